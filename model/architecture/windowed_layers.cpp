#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"

namespace moeline {
namespace {

int divided(const ModelFields& fields, const char* key, int heads, int fallback) {
  const int kv_heads = fields.integer_or(key, 1, heads, fallback);
  if (heads % kv_heads != 0) throw fields.error(key, "must divide the heads of queries");
  return kv_heads;
}

// What the search may have put in the place of a part, and did not in the models that we know.
void expect_plain(const Spec& part) {
  for (const std::string& key : part.keys()) {
    if (key == "no_op" || key == "n_heads_in_group" || key == "ffn_mult") continue;
    const std::vector<std::string> words = part.words(key);
    if (!std::all_of(words.begin(), words.end(), says_nothing)) {
      throw part.error_at(key, not_modelled("a part by architecture search", key));
    }
  }
}

bool is_left_out(const Spec& part) { return part.stands("no_op") && part.flag("no_op"); }

}  // namespace

// Layers with rotary embeddings see their own chunk alone; each fourth has none, and sees all keys.
void llama4_layers(const ModelFields& fields, Architecture& a) {
  constexpr int kInterval = 4;
  const int chunk = fields.integer_or("attention_chunk_size", 1, kWidest, 0);
  const std::vector<int> rotary = one_per_layer(fields, "no_rope_layers", 0, 1, a);
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    Layer& layer = a.layers[i];
    const bool rotates = rotary.empty() ? (i + 1) % kInterval != 0 : rotary[i] == 1;
    if (rotates) layer.attention.chunk = chunk;
  }
  a.n_shared_experts = 1;
  a.shared_intermediate_size = a.moe_intermediate_size;
}

// Layers that attend to all keys have heads of another size, and fewer of keys, which may be the values as well. Of
// experts a dense feed-forward network runs beside them.
void gemma4_layers(const ModelFields& fields, Architecture& a) {
  if (fields.integer_or("hidden_size_per_layer_input", 0, kWidest, 0) > 0) {
    refuse(fields, "hidden_size_per_layer_input", "embeddings of each layer");
  }
  if (fields.text_or("use_bidirectional_attention", "vision") != "vision") {
    refuse(fields, "use_bidirectional_attention", "attention in both directions");
  }
  a.output_norms = true;
  for (Layer& layer : a.layers) {
    LayerAttention& attention = layer.attention;
    if (attention.window > 0) continue;
    attention.qk_dim = attention.v_dim = fields.integer_or("global_head_dim", 1, kWidest, attention.qk_dim);
    attention.kv_heads = divided(fields, "num_global_key_value_heads", attention.heads, attention.kv_heads);
    attention.keys_are_values = fields.flag_or("attention_k_eq_v", false);
  }
  if (!fields.flag_or("enable_moe_block", false)) {
    if (a.n_routed_experts > 0) refuse(fields, "enable_moe_block", "experts that are switched off");
    return;
  }
  a.n_shared_experts = 1;
  a.shared_intermediate_size = fields.integer("intermediate_size", 1, kWidest);
}

void mimo_layers(const ModelFields& fields, Architecture& a) {
  const std::vector<int> windowed = one_per_layer(fields, "hybrid_layer_pattern", 0, 1, a);
  if (windowed.empty()) return fields.require({"hybrid_layer_pattern"});
  const int window = fields.integer("sliding_window", 1, kWidest);
  for (const char* key : {"sliding_window_size", "attention_chunk_size"}) {  // the same, for other readers
    if (fields.integer_or(key, 1, kWidest, window) != window) throw fields.error(key, "is not sliding_window");
  }
  const int v_dim = fields.integer_or("v_head_dim", 1, kWidest, a.layers.front().attention.v_dim);
  for (std::size_t i = 0; i < windowed.size(); ++i) {
    LayerAttention& attention = a.layers[i].attention;
    attention.v_dim = v_dim;
    attention.window = windowed[i] == 1 ? window : 0;
    const bool sinks = windowed[i] == 1 ? fields.flag_or("add_swa_attention_sink_bias", false)
                                        : fields.flag_or("add_full_attention_sink_bias", false);
    attention.sinks = sinks;
    if (windowed[i] == 0) continue;
    attention.heads = fields.integer_or("swa_num_attention_heads", 1, kMostHeads, attention.heads);
    attention.kv_heads = divided(fields, "swa_num_key_value_heads", attention.heads, attention.kv_heads);
    attention.qk_dim = fields.integer_or("swa_head_dim", 1, kWidest, attention.qk_dim);
    attention.v_dim = fields.integer_or("swa_v_head_dim", 1, kWidest, v_dim);
  }
}

// DeciLM's rule: two thirds of the hidden size times a factor, rounded up to 256 (its modelling code).
void searched_layers(const ModelFields& fields, Architecture& a) {
  const std::vector<Spec> blocks = fields.maps_or_none("block_configs");
  if (blocks.empty()) return fields.require({"block_configs"});
  if (blocks.size() != a.layers.size()) throw fields.error("block_configs", "must have num_hidden_layers values");
  a.intermediate_size = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Spec attention = blocks[i].map("attention"), ffn = blocks[i].map("ffn");
    expect_plain(attention);
    expect_plain(ffn);
    Layer& layer = a.layers[i];
    if (is_left_out(attention)) {
      layer.attention = {};
    } else {
      const int group = attention.integer("n_heads_in_group", 1, layer.attention.heads);
      if (layer.attention.heads % group != 0)
        throw attention.error("n_heads_in_group", "must divide num_attention_heads");
      layer.attention.kv_heads = layer.attention.heads / group;
    }
    constexpr int kMultiple = 256;
    const int width = is_left_out(ffn) ? 0 : static_cast<int>(2 * ffn.number("ffn_mult", 0, 1024) * a.hidden_size / 3);
    layer.dense_width = (width + kMultiple - 1) / kMultiple * kMultiple;
    a.intermediate_size = std::max(a.intermediate_size, layer.dense_width);
  }
}

// Two layers of attention and dense networks are one of the checkpoint's; experts run beside the first network and join
// behind the second (shortcut-connected MoE, arXiv 2509.01322, section 2). As stacks run them without that overlap,
// they come before the second attention, and the first network is a shared expert of theirs. Of the experts that a
// token chooses those that compute nothing are left out, as many as chance gives it.
void shortcut_layers(const ModelFields& fields, Architecture& a) {
  if (fields.text_or("zero_expert_type", "identity") != "identity") {
    refuse(fields, "zero_expert_type", "experts that compute something else");
  }
  a.zero_expert_num = fields.integer_or("zero_expert_num", 0, 4096, 0);
  const double share = 1.0 * a.n_routed_experts / (a.n_routed_experts + a.zero_expert_num);
  a.num_experts_per_tok = std::max(1, static_cast<int>(std::lround(a.num_experts_per_tok * share)));
  a.n_shared_experts = 1;
  a.shared_intermediate_size = a.intermediate_size = fields.integer("ffn_hidden_size", 1, kWidest);
  for (std::size_t i = 1; i < a.layers.size(); i += 2) {
    a.layers[i].routed = false;
    a.layers[i].dense_width = a.intermediate_size;
  }
  for (int i = 0; i < a.num_hidden_layers; ++i) a.numbers.push_back({i / 2, i / 2});
}

int count_shortcut_layers(const ModelFields& fields) { return 2 * fields.integer("num_layers", 1, kWidest); }

}  // namespace moeline

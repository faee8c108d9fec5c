// Attention by the keys that most families share: MLA or GQA, windows, norms, biases.
#include <fmt/format.h>

#include <algorithm>

#include "architecture/config_keys.hpp"
#include "architecture/read_layers.hpp"

namespace moeline {
namespace {

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

// Latent attention has no heads of keys and values: what a configuration says of them must follow from the rest.
void check_mla_heads(const ModelFields& fields, const Architecture& a) {
  const int heads = a.num_attention_heads;
  if (fields.integer_or("num_key_value_heads", 1, kMostHeads, heads) != heads) {
    throw fields.error("num_key_value_heads", "must be num_attention_heads in latent attention");
  }
  const int nope = a.qk_nope_head_dim, rope = a.qk_rope_head_dim;
  const int dim = fields.integer_or("head_dim", 1, kWidest, rope);
  if (dim != rope && dim != nope && dim != nope + rope) {
    throw fields.error("head_dim", "must be qk_nope_head_dim, qk_rope_head_dim or their sum");
  }
  if (fields.integer_or("qk_head_dim", 1, kWidest, nope + rope) != nope + rope) {
    throw fields.error("qk_head_dim", "must be qk_nope_head_dim and qk_rope_head_dim together");
  }
}

LayerAttention read_mla(const ModelFields& fields, Architecture& a) {
  a.kv_lora_rank = fields.integer("kv_lora_rank", 1, kWidest);
  if (!fields.is_null("q_lora_rank")) a.q_lora_rank = fields.integer("q_lora_rank", 1, kWidest);
  a.qk_nope_head_dim = fields.integer("qk_nope_head_dim", 1, kWidest);
  a.qk_rope_head_dim = fields.integer("qk_rope_head_dim", 1, kWidest);
  a.v_head_dim = fields.integer("v_head_dim", 1, kWidest);
  check_mla_heads(fields, a);
  return {.kind = AttentionKind::mla,
          .heads = a.num_attention_heads,
          .kv_heads = a.num_attention_heads,
          .qk_dim = a.qk_nope_head_dim + a.qk_rope_head_dim,
          .v_dim = a.v_head_dim};
}

LayerAttention read_gqa(const ModelFields& fields, const Architecture& a) {
  const int heads = a.num_attention_heads;
  const int kv_heads = fields.integer_or("num_key_value_heads", 1, heads, heads);
  if (heads % kv_heads != 0) throw fields.error("num_key_value_heads", "must divide num_attention_heads");
  if (!fields.has("head_dim") && a.hidden_size % heads != 0) {
    throw fields.error("head_dim", "is missing, and num_attention_heads does not divide hidden_size");
  }
  const int dim = fields.integer_or("head_dim", 1, kWidest, a.hidden_size / heads);
  return {.kind = AttentionKind::gqa, .heads = heads, .kv_heads = kv_heads, .qk_dim = dim, .v_dim = dim};
}

QkNorm read_qk_norm(const ModelFields& fields, const ModelFamily& family) {
  if (!fields.flag_or("use_qk_norm", family.qk_norm)) return QkNorm::none;
  const std::string type = fields.text_or("qk_norm_type", "per_head");
  if (!is_one_of(type, {"per_head", "per_layer"})) refuse(fields, "qk_norm_type", "norms of queries and keys " + type);
  return type == "per_head" ? QkNorm::per_head : QkNorm::per_layer;
}

// Qwen2's rule: the layers from max_window_layers on. gpt_oss: every other layer from the first. Else all.
bool is_windowed(const ModelFields& fields, const Architecture& a, int layer) {
  if (a.model_type == "gpt_oss") return layer % 2 == 0;
  return !fields.has("use_sliding_window") || layer >= fields.integer_or("max_window_layers", 0, kWidest, 0);
}

void read_windows(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  std::vector<std::string> known = {"full_attention", "sliding_attention"};
  known.insert(known.end(), family.layer_types.begin(), family.layer_types.end());
  const std::vector<std::string> types = word_per_layer(fields, "layer_types", known, a);
  const bool listed = std::find(types.begin(), types.end(), "sliding_attention") != types.end();
  const bool off = !fields.has("sliding_window") || !fields.flag_or("use_sliding_window", true);
  if (types.empty() ? off : !listed) return;
  const int window = fields.integer("sliding_window", 1, kWidest);
  for (int i = 0; i < a.num_hidden_layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool has = types.empty() ? is_windowed(fields, a, i) : types[at] == "sliding_attention";
    if (has) a.layers[at].attention.window = window;
  }
}

}  // namespace

void refuse(const ModelFields& fields, const std::string& field, const std::string& what) {
  throw fields.error_at(field, not_modelled(what, field));
}

std::vector<int> one_per_layer(const ModelFields& fields, const std::string& field, int low, int high,
                               const Architecture& model) {
  std::vector<int> list = fields.integers_or_none(field, low, high);
  if (!list.empty() && list.size() != model.layers.size()) {
    throw fields.error(field, fmt::format("must have a value for each of the {} layers", model.layers.size()));
  }
  return list;
}

std::vector<std::string> word_per_layer(const ModelFields& fields, const std::string& field,
                                        const std::vector<std::string>& words, const Architecture& model) {
  std::vector<std::string> list = fields.texts_or_none(field);
  for (const std::string& word : list) {
    if (std::find(words.begin(), words.end(), word) == words.end())
      refuse(fields, field, "layers of " + word.substr(0, 40));
  }
  if (!list.empty() && list.size() != model.layers.size())
    throw fields.error(field, "must have num_hidden_layers values");
  return list;
}

void read_attention(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  a.num_attention_heads = fields.integer("num_attention_heads", 1, kMostHeads);
  LayerAttention attention = family.mla ? read_mla(fields, a) : read_gqa(fields, a);
  attention.sinks = family.attention_sinks;
  attention.gated = fields.flag_or("attn_output_gate", family.gated_attention);
  for (Layer& layer : a.layers) layer.attention = attention;
  a.attention_bias = fields.flag_or("attention_bias", family.attention_bias);
  a.output_bias = a.attention_bias && family.output_bias;
  a.qk_norm = read_qk_norm(fields, family);
  read_windows(fields, family, a);
}

}  // namespace moeline

#include "architecture/read_layers.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "architecture/config_keys.hpp"

namespace moeline {

// Attention by the keys that most families share: MLA or GQA, windows, norms, biases.

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

// Dense layers, routed and shared experts, and which layers have which, by every key that says so.

namespace {

using Layers = std::vector<bool>;

void only(Layers& routed, const std::vector<int>& listed) {
  for (std::size_t i = 0; i < listed.size(); ++i) routed[i] = routed[i] && listed[i] != 0;
}

// Qwen's, Llama's and ERNIE's steps say which layers, counted from one, are multiples; DeepSeek's which from zero.
void only_steps(const ModelFields& fields, Layers& routed) {
  const auto keep = [&](int step, std::size_t first) {
    for (std::size_t i = 0; i < routed.size(); ++i) {
      routed[i] = routed[i] && (i + first) % static_cast<std::size_t>(step) == 0;
    }
  };
  for (const char* key : {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}) {
    keep(fields.integer_or(key, 1, kWidest, 1), 1);
  }
  if (!fields.is_list("moe_layer_freq")) keep(fields.integer_or("moe_layer_freq", 1, kWidest, 1), 0);
}

void only_listed(const ModelFields& fields, const Architecture& a, Layers& routed) {
  if (fields.is_list("moe_layer_freq")) only(routed, one_per_layer(fields, "moe_layer_freq", 0, 1, a));
  const std::vector<std::string> types = word_per_layer(fields, "mlp_layer_types", {"dense", "sparse"}, a);
  for (std::size_t i = 0; i < types.size(); ++i) routed[i] = routed[i] && types[i] == "sparse";
  for (const int layer : fields.integers_or_none("mlp_only_layers", 0, a.num_hidden_layers - 1)) {
    routed[static_cast<std::size_t>(layer)] = false;
  }
}

Layers routed_layers(const ModelFields& fields, const Architecture& a) {
  const int layers = a.num_hidden_layers;
  Layers routed(a.layers.size(), true);
  const int first = fields.integer_or("first_k_dense_replace", 0, layers - 1, 0);
  const int end = fields.integer_or("moe_layer_end_index", -1, kWidest, -1);
  for (int i = 0; i < layers; ++i) routed[static_cast<std::size_t>(i)] = i >= first && (end == -1 || i <= end);
  only_steps(fields, routed);
  only_listed(fields, a, routed);
  return routed;
}

void read_groups(const ModelFields& fields, Architecture& a) {
  if (fields.text_or("topk_method", "") == "greedy") return;  // over all experts
  a.n_group = fields.integer_or("n_group", 1, a.n_routed_experts, 1);
  a.topk_group = fields.integer_or("topk_group", 1, a.n_group, a.n_group);
  if (a.n_routed_experts % a.n_group != 0) throw fields.error("n_group", "must divide n_routed_experts");
  if (a.num_experts_per_tok > a.topk_group * (a.n_routed_experts / a.n_group)) {
    throw fields.error("num_experts_per_tok", "exceeds the experts of topk_group groups");
  }
}

void read_shared_experts(const ModelFields& fields, Architecture& a) {
  a.n_shared_experts = fields.integer_or("n_shared_experts", 0, 64, 0);
  const int size = fields.integer_or("shared_expert_intermediate_size", 0, kWidest, 0);
  if (size > 0 && !fields.has("n_shared_experts")) a.n_shared_experts = 1;  // Qwen's, which has no other key
  if (a.n_shared_experts > 0) a.shared_intermediate_size = size > 0 ? size : a.moe_intermediate_size;
}

void read_experts(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  a.n_routed_experts = fields.integer("n_routed_experts", 2, 4096);
  a.num_experts_per_tok = fields.integer("num_experts_per_tok", 1, std::min(64, a.n_routed_experts));
  a.moe_intermediate_size = fields.integer(family.expert_size, 1, kWidest);
  read_shared_experts(fields, a);
  a.shared_gate = family.shared_gate && a.n_shared_experts > 0;
  read_groups(fields, a);
  a.expert_bias = family.expert_bias;
  a.router_bias =
      fields.flag_or("use_routing_bias", family.router_bias) || fields.text_or("topk_method", "") == "noaux_tc";
  const Layers routed = routed_layers(fields, a);
  for (std::size_t i = 0; i < routed.size(); ++i) a.layers[i].routed = routed[i];
  if (a.moe_layers() == 0) throw fields.error("n_routed_experts", "are in no layer: the lists of layers leave none");
}

}  // namespace

bool has_experts(const ModelFields& fields, const ModelFamily& family) {
  return family.routed && !(family.may_be_dense && !fields.has("n_routed_experts"));
}

void read_feed_forward(const ModelFields& fields, const ModelFamily& family, Architecture& a) {
  if (has_experts(fields, family)) read_experts(fields, family, a);
  const bool needed = a.moe_layers() < a.num_hidden_layers && !family.lacks.contains(family.dense_size);
  a.intermediate_size =
      needed ? fields.integer(family.dense_size, 1, kWidest) : fields.integer_or(family.dense_size, 1, kWidest, 0);
  for (Layer& layer : a.layers) {
    if (!layer.routed) layer.dense_width = a.intermediate_size;
  }
}

}  // namespace moeline

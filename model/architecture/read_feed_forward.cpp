// Dense layers, routed and shared experts, and which layers have which, by every key that says so.
#include <fmt/format.h>

#include <algorithm>

#include "architecture/read_layers.hpp"

namespace moeline {
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

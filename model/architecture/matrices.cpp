#include "architecture/matrices.hpp"

#include <algorithm>
#include <numeric>

namespace moeline {
namespace {

using enum MatrixUse;

std::vector<Matrix> latent_attention(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double heads = attention.heads;
  const double query = heads * attention.qk_dim;
  std::vector<Matrix> list = {{{"self_attn.kv_a_proj_with_mqa"}, hidden * (a.kv_lora_rank + a.qk_rope_head_dim)},
                              {{"self_attn.kv_b_proj"}, a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim)},
                              {{"self_attn.o_proj"}, heads * a.v_head_dim * hidden, out}};
  if (a.q_lora_rank == 0) {
    list.push_back({{"self_attn.q_proj"}, hidden * query});
  } else {
    list.push_back({{"self_attn.q_a_proj"}, hidden * a.q_lora_rank});
    list.push_back({{"self_attn.q_b_proj"}, a.q_lora_rank * query});
  }
  if (attention.gated) list.push_back({{"self_attn.g_proj"}, hidden * heads * a.v_head_dim});
  return list;
}

std::vector<Matrix> grouped_attention(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double query = 1.0 * attention.heads * attention.qk_dim;
  const double value = 1.0 * attention.kv_heads * attention.v_dim;
  std::vector<Matrix> list = {{{"self_attn.q_proj", "mixer.q_proj"}, hidden * query * (attention.gated ? 2 : 1)},
                              {{"self_attn.k_proj", "mixer.k_proj"}, hidden * attention.kv_heads * attention.qk_dim},
                              {{"self_attn.v_proj", "mixer.v_proj"}, hidden * value},
                              {{"self_attn.o_proj", "mixer.o_proj"}, hidden * attention.heads * attention.v_dim, out}};
  if (attention.keys_are_values) list.erase(list.begin() + 2);
  return list;
}

// Queries, keys and values, what gates the output, and two numbers per head: how much to forget and to learn.
std::vector<Matrix> delta_net(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double keys = 1.0 * attention.kv_heads * attention.qk_dim;
  const double values = 1.0 * attention.heads * attention.v_dim;
  return {{{"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz"}, hidden * (2 * keys + values)},
          {{"linear_attn.in_proj_z", "linear_attn.in_proj_qkvz"}, hidden * values},
          {{"linear_attn.in_proj_ba", "linear_attn.in_proj_b"}, hidden * 2 * attention.heads, side},
          {{"linear_attn.out_proj"}, values * hidden, out}};
}

// As the gated delta net's, but with three projections, a decay for every channel, and a gate that may be of low rank.
std::vector<Matrix> kimi_delta(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double keys = 1.0 * attention.kv_heads * attention.qk_dim;
  const double values = 1.0 * attention.heads * attention.v_dim;
  std::vector<Matrix> list = {{{"self_attn.q_proj"}, hidden * keys},
                              {{"self_attn.k_proj"}, hidden * keys},
                              {{"self_attn.v_proj"}, hidden * values},
                              {{"self_attn.f_a_proj"}, hidden * attention.qk_dim, side},
                              {{"self_attn.f_b_proj"}, attention.qk_dim * keys, side},
                              {{"self_attn.b_proj"}, hidden * attention.heads, side},
                              {{"self_attn.o_proj"}, values * hidden, out}};
  if (attention.gate_rank == 0) {
    list.push_back({{"self_attn.g_proj"}, hidden * values});
  } else {
    list.push_back({{"self_attn.g_a_proj"}, hidden * attention.gate_rank, side});
    list.push_back({{"self_attn.g_b_proj"}, attention.gate_rank * values, side});
  }
  return list;
}

std::vector<Matrix> lightning(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double values = 1.0 * attention.heads * attention.v_dim;
  return {{{"self_attn.qkv_proj"}, hidden * (2.0 * attention.kv_heads * attention.qk_dim + values)},
          {{"self_attn.output_gate"}, hidden * values},
          {{"self_attn.out_proj"}, values * hidden, out}};
}

// One latent is key and value of all heads. The compressor weighs the numbers of neighbouring tokens by a second
// projection; blocks of four tokens overlap, for which it has both twice.
std::vector<Matrix> compressed(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double heads = 1.0 * attention.heads * attention.qk_dim;
  const double groups = 1.0 * a.o_groups * attention.heads / a.num_attention_heads;  // of a rank fewer
  std::vector<Matrix> list = {{{"attn.wq_a"}, hidden * a.q_lora_rank},
                              {{"attn.wq_b"}, a.q_lora_rank * heads},
                              {{"attn.wkv"}, hidden * attention.qk_dim},
                              {{"attn.wo_a"}, heads * a.o_lora_rank, out},
                              {{"attn.wo_b"}, groups * a.o_lora_rank * hidden, out}};
  if (attention.compress_ratio > 0) {
    list.push_back({{"attn.compressor"}, 2 * hidden * overlap_of(attention) * attention.qk_dim, side});
  }
  return list;
}

// Values, their gate, keys and queries of each group, and a step size per head.
std::vector<Matrix> mamba(const Architecture& a, const LayerAttention& attention) {
  const double hidden = a.hidden_size;
  const double values = 1.0 * attention.heads * attention.v_dim;
  const double groups = 2.0 * attention.kv_heads * attention.qk_dim;
  return {{{"mixer.in_proj"}, hidden * (2 * values + groups + attention.heads)},
          {{"mixer.out_proj"}, values * hidden, out}};
}

std::vector<Matrix> feed_forward(const Architecture& a, double hidden, double width,
                                 const std::vector<std::string>& before, const std::string& of_nemotron) {
  const auto named = [&](const char* part, const char* old) {
    std::vector<std::string> names;
    for (const std::string& module : before) names.push_back(module + "." + part);
    if (*old != '\0') names.push_back("block_sparse_moe.experts.0." + std::string(old));
    if (!of_nemotron.empty()) names.push_back(of_nemotron + "." + part);
    return names;
  };
  const bool routed = before.front().ends_with("experts.0");
  const double each = hidden * width;
  std::vector<Matrix> list = {{named("gate_proj", routed ? "w1" : ""), each},
                              {named("up_proj", routed ? "w3" : ""), each},
                              {named("down_proj", routed ? "w2" : ""), each, out}};
  if (!a.gated_ffn) list.erase(list.begin());
  return list;
}

}  // namespace

double overlap_of(const LayerAttention& attention) {
  constexpr int kOverlapping = 4;
  return attention.compress_ratio == kOverlapping ? 2 : 1;
}

std::vector<Matrix> attention_matrices(const Architecture& model, const LayerAttention& attention) {
  switch (attention.kind) {
    case AttentionKind::none:
      return {};
    case AttentionKind::gqa:
      return grouped_attention(model, attention);
    case AttentionKind::mla:
      return latent_attention(model, attention);
    case AttentionKind::compressed:
      return compressed(model, attention);
    case AttentionKind::delta_net:
      return delta_net(model, attention);
    case AttentionKind::kda:
      return kimi_delta(model, attention);
    case AttentionKind::lightning:
      return lightning(model, attention);
    case AttentionKind::mamba:
      return mamba(model, attention);
  }
  return {};
}

std::vector<Matrix> indexer_matrices(const Architecture& model, const LayerAttention& attention) {
  const KeySelection& selection = attention.selection;
  if (selection.heads == 0 || !selection.own) return {};
  const double hidden = model.hidden_size;
  const double heads = 1.0 * selection.heads * selection.dim;
  if (attention.kind == AttentionKind::gqa) {  // MiniMax-M3's
    return {{{"self_attn.index_q_proj"}, hidden * heads}, {{"self_attn.index_k_proj"}, hidden * selection.dim}};
  }
  if (attention.kind == AttentionKind::compressed) {
    return {{{"attn.indexer.wq_b"}, model.q_lora_rank * heads},
            {{"attn.indexer.compressor"}, 2 * hidden * overlap_of(attention) * selection.dim, side},
            {{"attn.indexer.weights_proj"}, hidden * selection.heads, side}};
  }
  return {{{"self_attn.indexer.wq_b"}, model.q_lora_rank * heads},
          {{"self_attn.indexer.wk"}, hidden * selection.dim},
          {{"self_attn.indexer.weights_proj"}, hidden * selection.heads, side}};
}

std::vector<Matrix> dense_matrices(const Architecture& model, int width) {
  return feed_forward(model, model.hidden_size, width, {"mlp", "feed_forward"}, "mixer");
}

std::vector<Matrix> expert_matrices(const Architecture& model) {
  if (model.model_type == "gemma4_text") {  // beside the dense network, which is called mlp
    return feed_forward(model, model.expert_hidden_size(), model.moe_intermediate_size, {"experts.0"}, "experts.0");
  }
  return feed_forward(model, model.expert_hidden_size(), model.moe_intermediate_size,
                      {"mlp.experts.0", "feed_forward.experts.0", "ffn.experts.0"}, "mixer.experts.0");
}

std::vector<Matrix> shared_matrices(const Architecture& model) {
  return feed_forward(model, model.hidden_size, model.shared_intermediate_size,
                      {"mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert", "ffn.shared_experts"},
                      "mixer.shared_experts");
}

LayerAttention attention_of_rank(LayerAttention attention, int tp) {
  attention.heads /= tp;
  attention.kv_heads = std::max(1, attention.kv_heads / tp);
  return attention;
}

double parameters_of(const std::vector<Matrix>& matrices) {
  return std::accumulate(matrices.begin(), matrices.end(), 0.0,
                         [](double sum, const Matrix& matrix) { return sum + matrix.parameters; });
}

}  // namespace moeline

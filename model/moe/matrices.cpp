#include "moe/matrices.hpp"

namespace moeline {
namespace {

std::vector<Matrix> latent_attention(const Architecture& a) {
  const double hidden = a.hidden_size;
  const double heads = a.num_attention_heads;
  const double query = heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  std::vector<Matrix> list = {{{"self_attn.kv_a_proj_with_mqa"}, hidden * (a.kv_lora_rank + a.qk_rope_head_dim)},
                              {{"self_attn.kv_b_proj"}, a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim)},
                              {{"self_attn.o_proj"}, heads * a.v_head_dim * hidden}};
  if (a.q_lora_rank == 0) {
    list.push_back({{"self_attn.q_proj"}, hidden * query});
  } else {
    list.push_back({{"self_attn.q_a_proj"}, hidden * a.q_lora_rank});
    list.push_back({{"self_attn.q_b_proj"}, a.q_lora_rank * query});
  }
  return list;
}

std::vector<Matrix> grouped_attention(const Architecture& a) {
  const double hidden = a.hidden_size;
  const double query = 1.0 * a.num_attention_heads * a.head_dim;
  const double key = 1.0 * a.num_key_value_heads * a.head_dim;
  return {{{"self_attn.q_proj"}, hidden * query},
          {{"self_attn.k_proj"}, hidden * key},
          {{"self_attn.v_proj"}, hidden * key},
          {{"self_attn.o_proj"}, query * hidden}};
}

}  // namespace

std::vector<Matrix> attention_matrices(const Architecture& model) {
  return model.is_mla() ? latent_attention(model) : grouped_attention(model);
}

std::vector<Matrix> dense_matrices(const Architecture& model) {
  const double each = 1.0 * model.hidden_size * model.intermediate_size;
  return {{{"mlp.gate_proj"}, each}, {{"mlp.up_proj"}, each}, {{"mlp.down_proj"}, each}};
}

std::vector<Matrix> expert_matrices(const Architecture& model) {
  const double each = 1.0 * model.hidden_size * model.moe_intermediate_size;
  return {{{"mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"}, each},
          {{"mlp.experts.0.up_proj", "block_sparse_moe.experts.0.w3"}, each},
          {{"mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2"}, each}};
}

std::vector<Matrix> shared_matrices(const Architecture& model) {
  const double each = 1.0 * model.hidden_size * model.moe_intermediate_size;
  return {{{"mlp.shared_experts.gate_proj"}, each},
          {{"mlp.shared_experts.up_proj"}, each},
          {{"mlp.shared_experts.down_proj"}, each}};
}

}  // namespace moeline

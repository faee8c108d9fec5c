#include "moe/megatron_kernels.hpp"

#include "architecture/matrices.hpp"
#include "moe/module_names.hpp"

namespace moeline::megatron {

Operator Kernels::of_expert(std::string name, double m, double n, double k) const {
  Operator op = kernels::linear_gemm(format_, std::move(name), m, n, k);
  op.family = gemm_family(GemmLayout::contiguous, format_);
  return op;
}

void Kernels::each_expert(const char* module, const std::string& name, const LinearShape& shape) {
  const int experts = static_cast<int>(work_.local_experts());
  for (int i = 0; i < experts; ++i) add(module, of_expert(name, shape.rows / experts, shape.n, shape.k));
}

void Kernels::experts_weight_gradient(const char* module, const std::string& name, const LinearShape& shape) {
  const int experts = static_cast<int>(work_.local_experts());
  for (int i = 0; i < experts; ++i) {
    add(module, of_expert(name + " wgrad", shape.n, shape.k, shape.rows / experts));
    as_weight_gradient(ops().back());
  }
}

AttentionTensors::AttentionTensors(const LayerWork& w)
    : work(w),
      a(attention_of_rank(w.content.attention, w.tp)),
      t(w.tokens()),
      own(w.own_tokens()),
      hidden(w.model.hidden_size),
      query(1.0 * a.heads * a.qk_dim),
      key(1.0 * a.kv_heads * a.qk_dim),
      value(1.0 * a.kv_heads * a.v_dim),
      out(1.0 * a.heads * a.v_dim) {}

Operator residual_add(const LayerWork& work) {
  const double numbers = work.own_tokens() * work.model.hidden_size;
  return kernels::in(module_names::kNorms, kernels::elementwise("bias, dropout and residual add", numbers, 3));
}

Operator layer_norm(const LayerWork& work) {
  return kernels::in(module_names::kNorms, kernels::norm("RMSNorm", work.own_tokens(), work.model.hidden_size, 2));
}

double routed_pairs(const LayerWork& work) { return work.own_tokens() * work.model.num_experts_per_tok; }

}  // namespace moeline::megatron

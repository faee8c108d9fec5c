#include "moe/megatron_kernels.hpp"

#include "architecture/matrices.hpp"

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

LayerAttention own_attention(const LayerWork& work) { return attention_of_rank(work.content.attention, work.tp); }

}  // namespace moeline::megatron

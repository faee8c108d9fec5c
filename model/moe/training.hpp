// The kernels of one MoE layer in DeepSeek-V3's training, phase by phase, in launch order.
//
// The list is that of DeepSeek's published profile of February 2025 (deepseek-ai/profile-data, train.json): FP8
// linears with the casts, transposes and saved copies that they need, FlashAttention-3, group-limited router with
// auxiliary loss, recomputation of the MLA up-projections, RMSNorm and SwiGLU. Byte counts are the least traffic of
// the tensors involved. Phases are named as the profile's annotations name them: after the autograd operation, so
// that combine(B), the backward of combine, is a dispatch kernel.
#pragma once

#include <string>
#include <vector>

#include "moe/architecture.hpp"
#include "moe/dependency.hpp"
#include "moe/operator.hpp"
#include "moe/routing.hpp"

namespace moeline {

/// Work of one rank in one layer.
struct LayerWork {
  Architecture model;
  int micro_batch_size = 1;
  int seq_len = 4096;
  int ep = 64;
  int gpus_per_node = 8;
  Spread spread;
  ExpertLoad load;

  [[nodiscard]] double tokens() const { return static_cast<double>(micro_batch_size) * seq_len; }
  [[nodiscard]] double local_experts() const { return static_cast<double>(model.n_routed_experts) / ep; }
};

[[nodiscard]] std::vector<Operator> attention_forward(const LayerWork& work);          // attn(F), router included
[[nodiscard]] std::vector<Operator> attention_backward_input(const LayerWork& work);   // attn(B)
[[nodiscard]] std::vector<Operator> attention_backward_weight(const LayerWork& work);  // attn(W)
[[nodiscard]] std::vector<Operator> experts_forward(const LayerWork& work);            // mlp(F), shared expert included
[[nodiscard]] std::vector<Operator> experts_backward_input(const LayerWork& work);     // mlp(B)
[[nodiscard]] std::vector<Operator> experts_backward_weight(const LayerWork& work);    // mlp(W)
[[nodiscard]] std::vector<Operator> dispatch_forward(const LayerWork& work);           // dispatch(F)
[[nodiscard]] std::vector<Operator> dispatch_backward(const LayerWork& work);          // dispatch(B): combine kernel
[[nodiscard]] std::vector<Operator> combine_forward(const LayerWork& work);            // combine(F)
[[nodiscard]] std::vector<Operator> combine_backward(const LayerWork& work);           // combine(B): dispatch kernel

/// The kernels of a phase by its name. Throws SpecError for a name that no training phase has.
[[nodiscard]] std::vector<Operator> training_phase(const std::string& phase, const LayerWork& work);

[[nodiscard]] const std::vector<std::string>& training_phase_names();

[[nodiscard]] const std::vector<PhaseDependency>& training_dependencies();

}  // namespace moeline

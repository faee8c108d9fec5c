// The kernels of training, phase by phase, in launch order: DeepSeek's own, or Megatron-Core's (megatron.hpp).
//
// DeepSeek's list of a MoE layer is that of its published profile of February 2025 (deepseek-ai/profile-data,
// train.json): FP8 linears with the casts, transposes and saved copies that they need, FlashAttention-3, group-limited
// router with auxiliary loss, recomputation of the MLA up-projections, RMSNorm and SwiGLU. Byte counts are the least
// traffic of the tensors involved. Phases are named as the profile's annotations name them: after the autograd
// operation, so that combine(B), the backward of combine, is a dispatch kernel.
//
// Before the first MoE layer and behind the last there are other blocks; their lists are ours (training_blocks.cpp).
#pragma once

#include <string>
#include <vector>

#include "architecture/blocks.hpp"
#include "moe/all_to_all.hpp"
#include "moe/comm_mode.hpp"
#include "moe/operator.hpp"
#include "moe/rank_work.hpp"
#include "moe/training_choices.hpp"

namespace moeline {

/// Work of one rank in one block. `tp` ranks that follow each other share attention, dense and shared feed-forward
/// networks and the sequences; between these each goes on with its part of the tokens (sequence parallelism, arXiv
/// 2205.05198). `cp` such groups share sequences, too: each has 1/cp of the tokens of every one. `moe_tp` ranks that
/// follow each other share the same experts, 1/moe_tp of each, and the rows that they get.
struct LayerWork : RankWork {
  BlockKind kind = BlockKind::moe_layer;
  Layer content{};  ///< of layers
  TrainingChoices choices{};
  int micro_batch_size = 1;
  int seq_len = 4096;
  int tp = 1;
  int cp = 1;
  int moe_tp = 1;
  CommMode mode = CommMode::normal;  ///< how tokens reach experts
  ContextMode context = ContextMode::ring;

  /// Of a micro-batch, which tp ranks have together.
  [[nodiscard]] double tokens() const { return static_cast<double>(micro_batch_size) * seq_len / cp; }
  /// The rank's part of them: those that it norms, routes and sends.
  [[nodiscard]] double own_tokens() const { return tokens() / tp; }
  [[nodiscard]] double local_experts() const { return static_cast<double>(model.n_routed_experts) / ep; }
  /// `sent`: that tokens travel in.
  [[nodiscard]] AllToAllWork all_to_all(Precision sent) const;
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

[[nodiscard]] std::vector<Operator> dense_forward(const LayerWork& work);         // mlp(F) of a dense layer
[[nodiscard]] std::vector<Operator> dense_backward_input(const LayerWork& work);  // mlp(B)
[[nodiscard]] std::vector<Operator> dense_backward_weight(const LayerWork& work);
[[nodiscard]] std::vector<Operator> embedding_forward(const LayerWork& work);  // embedding(F)
[[nodiscard]] std::vector<Operator> embedding_weight(const LayerWork& work);   // embedding(W)
[[nodiscard]] std::vector<Operator> head_forward(const LayerWork& work);       // head(F)
[[nodiscard]] std::vector<Operator> head_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> head_weight(const LayerWork& work);
[[nodiscard]] std::vector<Operator> mtp_forward(const LayerWork& work);  // mtp(F)
[[nodiscard]] std::vector<Operator> mtp_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> mtp_weight(const LayerWork& work);

/// The kernels of a phase of a block by its name, without those that the choices do without. Throws SpecError for a
/// name that no phase of this kind of block has.
[[nodiscard]] std::vector<Operator> training_phase(const std::string& phase, const LayerWork& work);

/// Of a MoE layer.
[[nodiscard]] const std::vector<std::string>& training_phase_names();

/// Phases of a block in the order of the data; none where it has nothing to do. `sends`: tokens leave their rank for
/// their experts, else there is neither dispatch nor combine.
[[nodiscard]] const std::vector<std::string>& forward_phases(BlockKind kind, bool sends = true);
[[nodiscard]] const std::vector<std::string>& backward_phases(BlockKind kind, bool sends = true);  ///< of inputs
[[nodiscard]] const std::vector<std::string>& weight_phases(BlockKind kind);  ///< each needs the (B) of its name

}  // namespace moeline

// What a training run keeps, repeats and shares between replicas. The defaults are DeepSeek-V3's (arXiv 2412.19437,
// sections 3.2 and 3.3, and the kernels of its published profile).
#pragma once

#include <string>
#include <vector>

#include "architecture/blocks.hpp"
#include "moe/all_to_all.hpp"
#include "moe/comm_mode.hpp"
#include "moe/operator.hpp"
#include "moe/rank_work.hpp"

namespace moeline {

/// Whose kernels train a model.
enum class TrainingOperators {
  deepseek,  ///< DeepSeek-V3's own, of its published profile: FP8 for models like it
  megatron,  ///< Megatron-Core's with Transformer Engine: BF16 or FP8, GQA or MLA, dense or MoE layers
};

/// What the backward pass computes again instead of finding it in memory.
enum class Recompute {
  selective,  ///< by DeepSeek RMSNorm, MLA's up-projections, SwiGLU; by Megatron the modules below
  none,
  full,  ///< each layer's whole forward pass, by DeepSeek but for combine; only layers' inputs are kept
};

/// Megatron's --recompute-modules.
struct RecomputedModules {
  bool core_attn = false;    ///< attention's core
  bool layernorm = false;    ///< the norms before attention and the feed-forward network
  bool mla_up_proj = false;  ///< queries, keys and values from MLA's latents
  bool moe_act = false;      ///< the activation of routed experts
  bool mlp = false;          ///< dense feed-forward networks
};

/// Megatron's --offload-modules: what each takes as its input waits in the host's memory for the backward pass.
struct OffloadedModules {
  bool attn_norm = false;   ///< the norm before attention, where it is a module of its own
  bool qkv_linear = false;  ///< projections to queries, keys and values, with a norm that is a part of them
  bool core_attn = false;   ///< attention's core
  bool attn_proj = false;   ///< its output projection
  bool mlp_norm = false;    ///< the norm before routed experts
  bool expert_fc1 = false;  ///< the first product of routed experts
  bool moe_act = false;     ///< their activation

  [[nodiscard]] bool any() const {
    return attn_norm || qkv_linear || core_attn || attn_proj || mlp_norm || expert_fc1 || moe_act;
  }
};

struct TrainingChoices {
  TrainingOperators operators = TrainingOperators::deepseek;
  Recompute recompute = Recompute::selective;
  RecomputedModules modules{};     ///< of Megatron's operators
  OffloadedModules offload{};      ///< of Megatron's operators
  bool offload_optimizer = false;  ///< its states wait in the host's memory while passes run
  bool narrow_activations = true;  ///< SwiGLU's input is kept in FP8, attention's output in 12 bits; else in BF16
  bool fp32_gradients = true;      ///< accumulated in FP32; else BF16
  bool fp32_moments = false;       ///< of AdamW; else BF16
  bool copies_moments = false;     ///< BF16 moments are there in FP32 as well while the optimizer runs
  /// What replicas split (ZeRO, arXiv 1910.02054): 1 the optimizer's states, 2 also gradients, which are reduced after
  /// every micro-batch, 3 also parameters, which are gathered for each block of every pass; 0 nothing.
  int zero = 1;
  bool overlap_gradients = true;  ///< a stage's gradients are reduced as soon as they are complete, else after the last
  bool overlap_parameters = false;  ///< gathered one by one beside the first forward pass, else behind the optimizer
  bool delay_weights = true;  ///< where passes overlap, gradients of weights do not precede the transfers behind them
  bool mtp = true;            ///< the model's MTP modules are trained, too
  bool overlap_sends = true;  ///< a rank goes on while it sends activations to another stage

  [[nodiscard]] bool splits_optimizer() const { return zero >= 1; }
  [[nodiscard]] bool splits_gradients() const { return zero >= 2; }
  [[nodiscard]] bool splits_parameters() const { return zero >= 3; }
  [[nodiscard]] bool offloads() const { return offload.any() || offload_optimizer; }
  [[nodiscard]] bool by_megatron() const { return operators == TrainingOperators::megatron; }
};

// The kernels of training, phase by phase, in launch order: DeepSeek's own, or Megatron-Core's (megatron.hpp).
//
// DeepSeek's list of a MoE layer is that of its published profile of February 2025 (deepseek-ai/profile-data,
// train.json): FP8 linears with the casts, transposes and saved copies that they need, FlashAttention-3, group-limited
// router with auxiliary loss, recomputation of the MLA up-projections, RMSNorm and SwiGLU. Byte counts are the least
// traffic of the tensors involved. Phases are named as the profile's annotations name them: after the autograd
// operation, so that combine(B), the backward of combine, is a dispatch kernel.
//
// Before the first MoE layer and behind the last there are other blocks; their lists are ours (training_experts.cpp).

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

// What a training run keeps, repeats and shares between replicas. The defaults are DeepSeek-V3's (arXiv 2412.19437,
// sections 3.2 and 3.3, and the kernels of its published profile).
#pragma once

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
  bool fp32_moments = false;       ///< of AdamW; else BF16. Master weights are FP32
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

}  // namespace moeline

// Memory of one GPU in training with tensor, expert, pipeline and ZeRO-1 data parallelism.
#pragma once

#include <span>

#include "moe/training.hpp"

namespace moeline {

/// Parameters of blocks on one GPU. Tables are counted once however many blocks need them: an MTP module shares
/// embedding and LM head with the model where both are on its GPU (DeepSeek-V3, section 3.2.2), and has its own copy
/// where they are not.
struct StageParameters {
  double replicated = 0;  ///< the same on every data-parallel rank: attention, norms, router, shared and dense FFN, ...
  double experts = 0;     ///< routed ones, this GPU's
  double replicated_bytes = 0;  ///< as they lie in memory for the forward and backward pass
  double experts_bytes = 0;
  double repeated = 0;  ///< of the replicated ones, those that each tensor parallel rank has whole
};

/// How a stage's parameters are split over ranks, and whose they are.
struct StageSplit {
  int ep = 1;
  int tp = 1;
  int moe_tp = 1;
  TrainingOperators operators = TrainingOperators::deepseek;
};

/// Tensor parallel ranks have 1/tp of attention but for MLA's projections into latents, of dense and shared
/// feed-forward networks, of embedding and LM head; norms, router and MTP projection whole.
///
/// Bytes, by DeepSeek: as the model has them, linear layers in FP8 with a scale per 128x128; norms, router, embedding,
/// LM head and MTP projection in BF16. By Megatron all in BF16, and linear layers in FP8 beside that, by rows and by
/// columns.
[[nodiscard]] StageParameters stage_parameters(const Architecture& model, std::span<const Block> blocks,
                                               const StageSplit& split);

/// Bytes of gradients and optimizer states per parameter: FP32 or BF16 gradients; FP32 master weights and two moments.
/// Megatron's precision-aware optimizer, which BF16 moments need, keeps of the master weights of a BF16 model what BF16
/// has not, 16 bits (OptimizerConfig.store_param_remainders).
[[nodiscard]] double gradient_bytes(const TrainingChoices& choices);
[[nodiscard]] double optimizer_bytes(const TrainingChoices& choices, const Architecture& model);

/// Bytes per parameter of the group that is updated, dense or routed experts', while the optimizer runs: 0, or both
/// moments in FP32 (TransformerEngine's FusedAdam.step from its pull request 1640, April 2025, to 2632 of 2026).
[[nodiscard]] double update_bytes(const TrainingChoices& choices);

/// Bytes that one micro-batch leaves behind in a block from its forward pass until its backward pass is done. By
/// Megatron as megatron.hpp has it. By DeepSeek what the kernels of the backward pass read and no kernel of it computes
/// (training_attention.cpp, training_experts.cpp). MoE layer, selective recomputation, per token: two hidden states
/// (BF16), latents of queries and keys, the core's output (12 bits) with its log-sum-exp, the router's scores; per
/// expert row its input (FP8) and gate_up output (FP8); of shared experts the same per token. Without recomputation
/// also normed inputs and latents (FP8), q, k, v (BF16) and SwiGLU's output (FP8). Full: the layer's input alone.
[[nodiscard]] double saved_bytes(const LayerWork& work);

/// Of these, the bytes that wait in the host's memory where the choices say so.
[[nodiscard]] double offloaded_bytes(const LayerWork& work);

/// Bytes that wait for the gradients of weights once those of inputs are computed, where the two are apart: both
/// operands of every weight gradient in FP8 (FP8 also where activations are kept wide: its GEMMs take no other), of
/// head, MTP projection and embedding in BF16. They take the place of saved_bytes().
[[nodiscard]] double pending_weight_bytes(const LayerWork& work);

/// Bytes of temporaries, the larger of attention's and the MLP's: the tensors around the core (of its backward pass
/// with gradients and FP32 accumulators, of Megatron with keys of other ranks), or those from the experts' input to
/// their output.
[[nodiscard]] double forward_workspace_bytes(const LayerWork& work);
[[nodiscard]] double backward_workspace_bytes(const LayerWork& work);

}  // namespace moeline

// The kernels of training in Megatron-Core with Transformer Engine, phase by phase, in launch order.
//
// What is published of them: Megatron-Core's sources (core/transformer, core/models/gpt, core/fusions), with the fused
// kernels that its recipes for MoE models switch on: rotary embedding, SwiGLU weighted by the router's probabilities,
// permutation, router, cross entropy. Experts are one cuBLAS GEMM each, as Transformer Engine's GroupedLinear runs
// them. The small kernels around the router are ours.
//
// Weight gradients are added to FP32 ones in their GEMMs. Below BF16 Transformer Engine casts what a linear layer takes
// twice, by rows for its own product and by columns for the gradient of its weights; weights are cast once a step.
//
// Tokens travel in BF16. `tp` ranks have projections into heads and hidden layers by columns, those back by rows,
// all-gather before and reduce-scatter behind them (arXiv 2205.05198, figure 5); what a weight gradient needs is
// gathered again, beside the gradient of the input. Experts are whole, or `moe_tp` ranks have a part of each and of
// each other's rows. What `cp` ranks exchange around attention is in megatron_attention.cpp.
#pragma once

#include <vector>

#include "moe/training.hpp"

namespace moeline::megatron {

/// attn(F): norms, attention, residual add; of MoE layers the router and, before NCCL's all-to-all, the permutation.
[[nodiscard]] std::vector<Operator> attention_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> attention_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> attention_backward_weight(const LayerWork& work);

/// mlp(F): shared experts, then routed ones.
[[nodiscard]] std::vector<Operator> experts_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> experts_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> experts_backward_weight(const LayerWork& work);

[[nodiscard]] std::vector<Operator> dense_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> dense_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> dense_backward_weight(const LayerWork& work);

/// By the mode of the work: NCCL's all-to-all, DeepEP's, or one inside an NVLink domain.
[[nodiscard]] std::vector<Operator> dispatch_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> dispatch_backward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> combine_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> combine_backward(const LayerWork& work);

[[nodiscard]] std::vector<Operator> embedding_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> embedding_weight(const LayerWork& work);
[[nodiscard]] std::vector<Operator> head_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> head_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> head_weight(const LayerWork& work);
[[nodiscard]] std::vector<Operator> mtp_forward(const LayerWork& work);
[[nodiscard]] std::vector<Operator> mtp_backward_input(const LayerWork& work);
[[nodiscard]] std::vector<Operator> mtp_weight(const LayerWork& work);

/// Bytes that one micro-batch leaves behind in a layer for its backward pass: what autograd keeps of each module, less
/// what is computed again. Tensors between the ranks' parts are kept as parts (sequence parallelism).
///   norms          their inputs (BF16) and outputs: BF16, or FP8 where FP8 GEMMs alone take them. Those before MLA and
///                  experts are modules of their own, which `layernorm` computes again
///   attention      queries, keys, values and output (BF16), log-sum-exp (FP32); latents and their norms
///   router         probabilities (FP32) and the map (1 byte)
///   feed-forward   input, gate_up output (BF16), activation, of routed experts per row
[[nodiscard]] double saved_layer_bytes(const LayerWork& work);

/// Of these, what the offloaded modules take as their inputs, as far as it is kept. `qkv_linear` of MLA: the latents
/// and both norms' outputs.
[[nodiscard]] double offloaded_layer_bytes(const LayerWork& work);

/// Of the layer's attention, where ranks share sequences: keys and values of others, in a ring the block in use and the
/// next one, else all; with `gradients` these, too. BF16.
[[nodiscard]] double exchanged_bytes(const LayerWork& work, bool gradients);

/// Both operands of every weight gradient of a layer, as its GEMMs read them: where weights' gradients come later.
[[nodiscard]] double pending_layer_bytes(const LayerWork& work);

}  // namespace moeline::megatron

// What ranks that share attention, experts or their tokens exchange by collectives: sums of partial results, and
// tokens. Megatron's split (arXiv 1909.08053): projections into heads and into the hidden layer by columns, those back
// by rows, whose partial sums are added up; or, where ranks go on with a part of the tokens each, reduce-scatter and
// all-gather in the all-reduce's place (arXiv 2205.05198).
#pragma once

#include <vector>

#include "moe/inference.hpp"

namespace moeline {

/// Weights along an input that share a scale, of which each rank must have whole blocks; of INT4 as is usual. 1: none
/// do, or all of a tensor.
[[nodiscard]] int scale_block(Precision weights);
/// Columns of an expert's FFN that each of `ranks` multiplies by. Where they hold no whole blocks each, all have as
/// many as the first one's blocks, and the last ones zeroes for what there is not, as vLLM and SGLang load MXFP4.
[[nodiscard]] double columns_of_rank(double columns, double ranks, Precision weights);

/// Ranks that follow each other, as those of a group do.
[[nodiscard]] Replicas consecutive(int ranks, int gpus_per_node);
/// Ranks that lie so many GPUs apart, as those of one index in groups that follow each other do.
[[nodiscard]] Replicas spaced(int ranks, int distance, int gpus_per_node);

/// Partial sums of every token of the attention group, `tokens` x hidden in BF16: each of its ranks gets all of them,
/// by the stack's own kernel where it has one.
[[nodiscard]] Operator all_reduce_tokens(const InferenceWork& work);
/// The stack's own kernel adds the residual and norms what it summed up, as TensorRT-LLM, SGLang and vLLM have it by
/// default (allreduce_rms fusions): no kernel of its own follows.
[[nodiscard]] bool norms_in_all_reduce(const InferenceWork& work);
/// A layer's input is normed by the sum that ends the layer before it, or the embedding. The last norm, of the few rows
/// whose logits are wanted, is a kernel of its own either way.
[[nodiscard]] bool comes_normed(const InferenceWork& work);
/// Each gets those of its own tokens, and the way back.
[[nodiscard]] Operator scatter_tokens(const InferenceWork& work);
[[nodiscard]] Operator gather_tokens(const InferenceWork& work);

/// Keys and values of all new tokens of the prompts, in BF16: MLA's latents, which each rank then expands, or those of
/// the rank's heads. They are gathered where cp ranks share prompts, and not in a ring.
[[nodiscard]] bool gathers_keys(const InferenceWork& work);
[[nodiscard]] Operator gather_keys(const InferenceWork& work, const LayerAttention& attention);
/// Of the queries of prompts that an indexer scores in parts: the number of each key chosen (4 bytes).
[[nodiscard]] Operator gather_choices(const InferenceWork& work, double top_k);
/// In a ring: keys and values of so many tokens, MLA's expanded, on their way to the next rank.
[[nodiscard]] Operator pass_keys_on(const InferenceWork& work, const LayerAttention& attention, double keys);

/// Before the experts: tokens of all ranks, as they travel, with their experts and weights (4 bytes each).
[[nodiscard]] Operator gather_for_experts(const InferenceWork& work);
/// Behind them: BF16 sums, of each rank's own tokens.
[[nodiscard]] Operator scatter_from_experts(const InferenceWork& work);

/// What a stage of a pipeline has for the next one: hidden state and residual in BF16. Each rank of an attention group
/// sends its part of them, and its receivers gather them (as vLLM and SGLang send).
[[nodiscard]] double stage_output_bytes(const InferenceWork& work);
[[nodiscard]] Operator gather_stage_input(const InferenceWork& work);

/// `rows` x vocabulary BF16 logits, of which each rank of the attention group has its part.
[[nodiscard]] Operator gather_logits(const InferenceWork& work, double rows);

}  // namespace moeline

// Requests that a step goes on with, by what attention does for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "architecture/blocks.hpp"
#include "architecture/matrices.hpp"
#include "moe/collectives.hpp"
#include "moe/comm_mode.hpp"
#include "moe/dispatcher.hpp"
#include "moe/operator.hpp"
#include "moe/rank_work.hpp"

namespace moeline {

struct Sequences {
  double requests = 0;   ///< the last prompt of a step may be cut
  double query_len = 1;  ///< new tokens of each: 1 + drafted ones where it decodes, those not cached of a prompt
  double kv_len = 0;     ///< keys that the last new token of a request sees, on average over the requests

  [[nodiscard]] bool any() const { return requests > 0; }
  [[nodiscard]] double tokens() const { return std::round(requests * query_len); }
};

// The kernels of prefill and decode, phase by phase, in launch order.
//
// Lists are those of today's open servers (DeepEP, DeepGEMM, FlashMLA or FlashAttention) and of DeepSeek's published
// operators: projections of queries and latents in one GEMM, residual adds in the norms, casts that write scales the
// way the GEMM wants them, SwiGLU with the cast of its result, one kernel for scores and top-k. Norms and casts are
// kernels of their own, but where a stack's all-reduce norms what it sums; servers that fuse more save a launch each.
// What training needs besides (saved copies, transposed weights, auxiliary loss) is not there. Byte counts are the
// least traffic of the tensors.

/// Which small kernels a stack runs apart, and which in one. The default: as DeepSeek's operators do.
struct SmallKernelHabits {
  bool copies_heads = false;       ///< q and k are copied out of their product and normed each by itself
  bool choice_normalises = false;  ///< the kernel that chooses experts makes their weights add up to 1
  bool casts_logits = false;       ///< logits are turned to FP32 before a token is chosen by them
};

/// Work of one rank with one micro-batch: requests that decode, prompts, or in a mixed step both. They attend apart;
/// all else takes their tokens together.
///
/// `tp` ranks that follow each other share attention: heads, and the requests, which all of them have. `ep` x `moe_tp`
/// ranks, whole groups of the former, share a layer of experts: ranks with the same experts hold 1/moe_tp of each. `cp`
/// such groups share prompts: each has 1/cp of the new tokens of every prompt, dealt out so that all see as many keys
/// (zigzag), and `prefill` is its part: query_len of its own, kv_len of the whole prompt.
///
/// A CUDA graph computes as many rows as it was captured for. Those that no request has attend to one key, which takes
/// no time here; everything else is done for them as for tokens, but that their choices of experts may be masked.
struct InferenceWork : RankWork {
  Sequences decode;
  Sequences prefill;
  double padding = 0;           ///< requests beside those of `decode`, whose rows a captured graph computes
  bool routes_padding = false;  ///< their rows choose experts as tokens do; `load` counts them then
  int tp = 1;
  int cp = 1;
  int moe_tp = 1;
  ContextMode context = ContextMode::all_gather;
  bool splits_indexer = false;  ///< of prompts, each rank of an attention group scores a part of the queries
  CommMode mode = CommMode::normal;
  Precision dispatch = Precision::fp8;  ///< that tokens travel in
  bool experts_choose = false;          ///< the fused layer's kernels choose the experts themselves
  ExpertPadding expert_padding;         ///< of these
  SmallKernelHabits kernels;
  bool shared_beside = false;    ///< shared experts run beside the routed ones
  double most_custom_bytes = 0;  ///< of messages that the stack's own all-reduce takes; 0: it has none
  int redundant_experts = 0;
  bool core_first = false;  ///< attn-0 ends behind the core of attention, not before it
  Piece experts_cut;        ///< the part of each rank's experts, and of the messages to them, that this work is of

  /// Rows that no request has.
  [[nodiscard]] double padded_rows() const { return std::round(padding * decode.query_len); }
  /// Rows of the attention group.
  [[nodiscard]] double tokens() const { return decode.tokens() + padded_rows() + prefill.tokens(); }
  /// Tokens whose logits are wanted: those verified in decode, the last of each prompt.
  [[nodiscard]] double logit_rows() const { return decode.tokens() + prefill.requests; }
  /// How what the other ranks sent lies here.
  [[nodiscard]] Arrival arrival() const {
    const Arrival usual = dispatcher_of(mode).arrival;
    return usual == Arrival::rows && elastic.layout == RowLayout::contiguous ? Arrival::tokens : usual;
  }
  /// Experts' GEMMs go through a buffer for each: as rows came, or in decode, where a graph has fixed their shapes.
  [[nodiscard]] bool masked() const {
    return arrival() == Arrival::slabs || (arrival() == Arrival::rows && !prefill.any());
  }
  /// Between attention and experts, each rank of an attention group goes on with its part of the tokens.
  [[nodiscard]] bool scatters_tokens() const { return tp > 1 && sends_tokens(mode); }
  /// That the rank routes.
  [[nodiscard]] double own_tokens() const { return of_rank(tokens()); }
  /// Of these, which it sends to experts one by one: those with a choice.
  [[nodiscard]] double sent_tokens() const { return of_rank(routes_padding ? tokens() : tokens() - padded_rows()); }
  /// Of all ranks that share a layer of experts.
  [[nodiscard]] double all_tokens() const { return tokens() * std::max(1, ep * moe_tp / tp); }
  /// Of a block, with the heads that the rank has.
  [[nodiscard]] LayerAttention attention(const Block& block) const {
    return attention_of_rank(block.content.attention, tp);
  }
  /// Of the layer, copies included.
  [[nodiscard]] int all_experts() const { return model.n_routed_experts + redundant_experts; }
  /// Of these, on all ranks, those that count.
  [[nodiscard]] int experts() const {
    return experts_cut.count == 1 ? all_experts() : ep * experts_cut.size_of(all_experts() / ep);
  }
  /// Of these, to which a token goes, on average.
  [[nodiscard]] double top_k() const { return 1.0 * model.num_experts_per_tok * experts() / all_experts(); }
  [[nodiscard]] double local_experts() const {
    return load.group_rows.empty() ? static_cast<double>(experts()) / ep : static_cast<double>(load.group_rows.size());
  }
  [[nodiscard]] AllToAllWork all_to_all() const;
  /// Without the rows that no request has.
  [[nodiscard]] InferenceWork of_requests() const;

 private:
  [[nodiscard]] double of_rank(double group_tokens) const {
    return scatters_tokens() ? std::ceil(group_tokens / tp) : group_tokens;
  }
};

/// What of a layer's dispatch, experts and combine is of a part of each rank's experts. REQUIRES: the low-latency mode,
/// and at most as many parts as a rank has experts.
[[nodiscard]] InferenceWork of_experts(InferenceWork work, const Piece& piece);

/// Kernels of a phase of a block. Phases:
///   attn-0     norm, projections before the core     attn-1  core, output projection, norm, gate     attn  both
///              (with core_first the core is of attn-0)
///   shared     shared experts
///   mlp        routed experts, or the dense feed-forward network
///   dispatch, combine   what the mode has before and behind the experts
/// Collectives of the attention group stand where their operands are ready: in attn, in a dense mlp, behind a combine.
///   stage_input   of a pipeline, what its attention groups do once a message has come
///   embedding, lm_head; mtp: what an MTP module does before its layer, draft_head: what it does after
/// Throws SpecError for another name.
[[nodiscard]] std::vector<Operator> inference_phase(const std::string& phase, const InferenceWork& work,
                                                    const Block& block);

[[nodiscard]] std::vector<Operator> attention_before_core(const InferenceWork& work, const Block& block);  // attn-0
[[nodiscard]] std::vector<Operator> attention_from_core(const InferenceWork& work, const Block& block);    // attn-1
[[nodiscard]] std::vector<Operator> shared_experts(const InferenceWork& work, const Block& block);
[[nodiscard]] std::vector<Operator> routed_experts(const InferenceWork& work, const Block& block);
[[nodiscard]] std::vector<Operator> dense_ffn(const InferenceWork& work, const Block& block);

/// Phases of one MoE layer (of a dense model, of one layer) in the order of the data: those of prefill, or with attn-0
/// and attn-1 those of decode. No dispatch where all ranks have the tokens, and no combine where a rank has all
/// experts.
[[nodiscard]] std::vector<std::string> inference_phases(const Architecture& model, bool decode, CommMode mode);

/// Of MoE layers; the phases of a dense one follow each other on the compute stream.
[[nodiscard]] const std::vector<PhaseDependency>& inference_dependencies(CommMode mode);

}  // namespace moeline

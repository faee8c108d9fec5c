// The kernels of prefill and decode, phase by phase, in launch order.
//
// Lists are those of today's open servers (DeepEP, DeepGEMM, FlashMLA or FlashAttention) and of DeepSeek's published
// operators: projections of queries and latents in one GEMM, residual adds in the norms, casts that write scales the
// way the GEMM wants them, SwiGLU with the cast of its result, one kernel for scores and top-k. Norms and casts are
// kernels of their own; servers that fuse them save one launch each. What training needs besides (saved copies,
// transposed weights, auxiliary loss) is not there. Byte counts are the least traffic of the tensors.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "architecture/blocks.hpp"
#include "moe/all_to_all.hpp"
#include "moe/dependency.hpp"
#include "moe/operator.hpp"
#include "moe/rank_work.hpp"

namespace moeline {

/// Work of one rank with one micro-batch.
struct InferenceWork : RankWork {
  bool decode = false;
  double requests = 0;   ///< sequences; the last prompt of a step may be cut
  double query_len = 1;  ///< new tokens of each: 1 + drafted ones in decode, those not cached in prefill
  double kv_len = 0;     ///< keys that the last new token of a sequence sees, on average over the sequences
  bool low_latency = false;
  Precision dispatch = Precision::fp8;  ///< that tokens travel in
  int redundant_experts = 0;

  [[nodiscard]] double tokens() const { return std::round(requests * query_len); }
  [[nodiscard]] int experts() const { return model.n_routed_experts + redundant_experts; }
  [[nodiscard]] double local_experts() const {
    return load.group_rows.empty() ? static_cast<double>(experts()) / ep : static_cast<double>(load.group_rows.size());
  }
  [[nodiscard]] AllToAllWork all_to_all() const;
};

/// Kernels of a phase of a block. Phases:
///   attn-0     norm, projections before the core     attn-1  core, output projection, norm, gate     attn  both
///   shared     shared experts
///   mlp        routed experts, or the dense feed-forward network
///   dispatch, combine
///   embedding, lm_head; mtp: what an MTP module does before its layer, draft_head: what it does after
/// Throws SpecError for another name.
[[nodiscard]] std::vector<Operator> inference_phase(const std::string& phase, const InferenceWork& work,
                                                    const Block& block);

[[nodiscard]] std::vector<Operator> attention_before_core(const InferenceWork& work, const Block& block);  // attn-0
[[nodiscard]] std::vector<Operator> attention_from_core(const InferenceWork& work, const Block& block);    // attn-1
[[nodiscard]] std::vector<Operator> shared_experts(const InferenceWork& work);
[[nodiscard]] std::vector<Operator> routed_experts(const InferenceWork& work);
[[nodiscard]] std::vector<Operator> dense_ffn(const InferenceWork& work);

/// Phases of one MoE layer in the order of the data: those of prefill, or with attn-0 and attn-1 those of decode.
[[nodiscard]] std::vector<std::string> inference_phases(const Architecture& model, bool decode);

/// Of MoE layers; the phases of a dense one follow each other on the compute stream.
[[nodiscard]] const std::vector<PhaseDependency>& inference_dependencies();

}  // namespace moeline

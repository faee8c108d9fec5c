// How tokens reach the ranks of their experts, and how results come back.
#pragma once

namespace moeline {

enum class CommMode {
  normal,       ///< DeepEP's all-to-all that holds SMs of its own
  low_latency,  ///< and the one whose wire holds none
  nvlink,       ///< TensorRT-LLM's all-to-all inside an NVLink domain
  all_gather,   ///< every rank gets the tokens of all, and its part of the sums back by reduce-scatter
  all_reduce,   ///< all ranks have the same tokens: partial sums are added up
  none,         ///< one rank has all experts, and all of each
  all_to_all,   ///< NCCL's: each token once for each of its experts, behind counts that the host reads
  fused,        ///< inside the experts' kernel, over NVLink (DeepGEMM's MegaMoE)
  hybrid_ep,    ///< Megatron's, each token once to each of its NVLink domains, and there to each of its ranks
};

/// How the keys and values of a prompt reach the ranks that share its tokens.
enum class ContextMode {
  all_gather,  ///< those of all tokens before attention begins (as vLLM and SGLang prefill)
  ring,  ///< block by block from neighbour to neighbour, beside the attention to the block before (arXiv 2310.01889)
};

/// Whether results come back to a rank by kernels of their own.
[[nodiscard]] constexpr bool brings_results(CommMode mode) { return mode != CommMode::none && mode != CommMode::fused; }
/// Whether tokens leave their rank by kernels of their own, before the experts.
[[nodiscard]] constexpr bool sends_tokens(CommMode mode) {
  return brings_results(mode) && mode != CommMode::all_reduce;
}
/// Whether a token goes once to each rank that has its experts.
[[nodiscard]] constexpr bool sends_by_rank(CommMode mode) {
  return mode == CommMode::nvlink || mode == CommMode::hybrid_ep;
}
/// Whether transfers run on so many SMs as a scenario says.
[[nodiscard]] constexpr bool holds_sms(CommMode mode) {
  return mode == CommMode::normal || mode == CommMode::all_to_all || mode == CommMode::hybrid_ep;
}
/// DeepEP's, whose kernels stand around grouped GEMMs; elsewhere experts are one fused layer.
[[nodiscard]] constexpr bool is_deep_ep(CommMode mode) {
  return mode == CommMode::normal || mode == CommMode::low_latency;
}

}  // namespace moeline

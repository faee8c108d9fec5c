// The kernels of an all-to-all between expert-parallel ranks, as DeepEP runs it, and as TensorRT-LLM does over NVLink.
#pragma once

#include <vector>

#include "moe/comm_mode.hpp"
#include "moe/operator.hpp"
#include "routing/routing.hpp"

namespace moeline {

/// One rank's part: `tokens` of `hidden` numbers, each sent to `top_k` experts.
struct AllToAllWork {
  double hidden = 0;
  double top_k = 0;
  double tokens = 0;
  int experts = 0;  ///< routed and redundant ones, of all ranks
  int ep = 1;
  int gpus_per_node = 8;
  Spread spread;
  Precision dispatch = Precision::fp8;  ///< that tokens travel in
  Precision combine = Precision::bf16;  ///< that results come back in; DeepEP's do in BF16
  double rows = 0;           ///< token-expert pairs of the rank's experts, where they travel or arrive as such
  ElasticChoices elastic{};  ///< of DeepEP's second version

  [[nodiscard]] bool expanded() const { return elastic.layout == RowLayout::expanded; }
};

/// Normal mode, out: layout, barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_dispatch(const AllToAllWork& work);
/// Normal mode, BF16 back: barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_combine(const AllToAllWork& work);

/// The way back in training: gradients of results out again, by the layout of the forward pass, and gradients of tokens
/// summed up on their way back.
[[nodiscard]] std::vector<Operator> cached_dispatch(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> combine_of_gradients(const AllToAllWork& work);

/// Low-latency mode: one message per token and expert, straight to the expert's rank.
[[nodiscard]] Operator low_latency_dispatch(const AllToAllWork& work, Stage stage);
[[nodiscard]] Operator low_latency_combine(const AllToAllWork& work, Stage stage);

/// Over an NVLink domain, every token once to each of its ranks, by TensorRT-LLM's two-sided kernels. Out: who gets
/// what, transfer; FP8 tokens have one scale each. REQUIRES of both: all ranks are in one node.
[[nodiscard]] std::vector<Operator> nvlink_dispatch(const AllToAllWork& work);
/// Back: transfer. Each rank adds up what it gets.
[[nodiscard]] std::vector<Operator> nvlink_combine(const AllToAllWork& work);

/// The same by HybridEP: one kernel each way, which holds SMs of its own.
[[nodiscard]] std::vector<Operator> hybrid_ep_dispatch(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> hybrid_ep_combine(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> hybrid_ep_dispatch_gradients(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> hybrid_ep_combine_gradients(const AllToAllWork& work);
/// DeepEP's second version: the transfer, which holds SMs of its own, and an epilogue on all SMs that brings what came
/// from the buffer into its place, or sums it up.
[[nodiscard]] std::vector<Operator> deep_ep_v2_dispatch(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> deep_ep_v2_combine(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> deep_ep_v2_dispatch_gradients(const AllToAllWork& work);
[[nodiscard]] std::vector<Operator> deep_ep_v2_combine_gradients(const AllToAllWork& work);
[[nodiscard]] bool is_deep_ep_v2(const Operator& op);
[[nodiscard]] bool is_deep_ep_v2_epilogue(const Operator& op);

/// Perplexity's, in the same stages.
[[nodiscard]] Operator pplx_dispatch(const AllToAllWork& work, Stage stage);
[[nodiscard]] Operator pplx_combine(const AllToAllWork& work, Stage stage);
[[nodiscard]] bool is_pplx(const Operator& op);

/// Whether HybridEP moves tokens by this kernel.
[[nodiscard]] bool is_hybrid_ep(const Operator& op);

}  // namespace moeline

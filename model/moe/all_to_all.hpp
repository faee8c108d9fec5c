// The kernels of an all-to-all between expert-parallel ranks, as DeepEP runs it, and as TensorRT-LLM does over NVLink.
#pragma once

#include <vector>

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
};

/// Normal mode, out: layout, barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_dispatch(const AllToAllWork& work);
/// Normal mode, BF16 back: barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_combine(const AllToAllWork& work);

/// The way back in training: gradients of results out again, by the layout of the forward pass, and gradients of tokens
/// summed up on their way back.
[[nodiscard]] std::vector<Operator> cached_dispatch(const AllToAllWork& work, Precision numbers);
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
[[nodiscard]] Operator hybrid_ep_dispatch(const AllToAllWork& work);
[[nodiscard]] Operator hybrid_ep_combine(const AllToAllWork& work);
/// Whether HybridEP moves tokens by this kernel.
[[nodiscard]] bool is_hybrid_ep(const Operator& op);

}  // namespace moeline

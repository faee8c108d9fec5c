// The kernels of an all-to-all between expert-parallel ranks, as DeepEP runs it.
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
  Precision dispatch = Precision::fp8;  ///< that tokens travel in; results come back in BF16
};

/// Normal mode, out: layout, barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_dispatch(const AllToAllWork& work);
/// Normal mode, BF16 back: barrier, transfer.
[[nodiscard]] std::vector<Operator> normal_combine(const AllToAllWork& work);

/// Low-latency mode: one message per token and expert, straight to the expert's rank.
[[nodiscard]] Operator low_latency_dispatch(const AllToAllWork& work, Stage stage);
[[nodiscard]] Operator low_latency_combine(const AllToAllWork& work, Stage stage);

}  // namespace moeline

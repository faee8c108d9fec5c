// What decode may be fast in: for each user, or for all of them together.
#pragma once

#include <vector>

#include "experiments/plan/deployment.hpp"

namespace moeline {

/// Decode with a batch size that fits, whether or not it is fast enough, with the best prefill beside it.
struct TradeOff {
  DecodeChoice choice;
  double tokens_per_s_per_user = 0;
  double tokens_per_s_per_gpu = 0;  ///< over the GPUs of prefill too
};

/// The trade-offs of which no other is better in both, by tokens per second and user.
[[nodiscard]] std::vector<TradeOff> pareto_front(std::vector<TradeOff> all);

}  // namespace moeline

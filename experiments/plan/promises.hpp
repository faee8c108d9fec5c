// Promises that hold: a plan's deployments served request by request, the cheapest first, until one keeps the limits.
#pragma once

#include <vector>

#include "experiments/plan/confirm.hpp"

namespace moeline {

struct Served {
  Deployment deployment;
  Confirmation confirmation;
};

/// Deployments as they were served, in turn; the last one keeps the limits, or none does.
struct Promises {
  std::vector<Served> tried;
  bool kept = false;
  [[nodiscard]] const Served& last() const { return tried.back(); }
};

/// `deployments`: by rank. One that breaks a limit is tried again with more units of the side that is short, in the
/// turn of its new price. Of one price two are tried, and kMostTried in all: each takes seconds.
inline constexpr int kMostTried = 8;
[[nodiscard]] Promises keep_promises(const Plan& plan, const std::vector<Deployment>& deployments,
                                     const Progress& progress = {});

/// TTFT and TPOT at the percentile are within the limits, or above them by a hundredth at most.
[[nodiscard]] bool keeps(const Confirmation& confirmation, const Limits& limits);

/// The deployment that was served last comes first, with TTFT and TPOT as served; those that were tried before it say
/// what they broke.
void put_first(const Promises& promises, std::vector<Deployment>& deployments);

/// The same units, so many of them: with its price, utilization and tokens per GPU.
[[nodiscard]] Deployment with_units(Deployment deployment, int prefill, int decode);

}  // namespace moeline

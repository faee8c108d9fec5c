// The answer to a plan: the best deployments, and why the others are not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"
#include "experiments/plan/points.hpp"

namespace moeline {

/// What was asked for and cannot be.
struct Impossible {
  std::string what;  ///< "decode EP8 on h800, decode EP8 on h200"
  std::string why;
};

struct Answer {
  std::vector<Deployment> deployments;  ///< the best of every way, cheapest first
  std::vector<TradeOff> trade_offs;     ///< of disaggregated serving
  std::vector<Impossible> impossible;
  std::optional<Limits> nearest_limits;  ///< where there are no deployments: the least that there could be one with
  std::optional<Deployment> nearest;     ///< with those limits
};

/// Searches on `workers` threads; equal plans give equal answers.
[[nodiscard]] Answer solve(const Plan& plan, KnownSteps& known, std::size_t workers, const Progress& progress = {});

/// "EP144, 2 x 96 requests, TBO, MTP 1". TBO: two batches overlap.
[[nodiscard]] std::string describe(const DecodeChoice& choice);
[[nodiscard]] std::string describe(const PrefillChoice& choice);

}  // namespace moeline

// Constants from observations: one least-squares problem for the whole kernel set.
#pragma once

#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

/// Minimises the weighted sum of (fitted - measured)^2. Weights: 1 / measured^2 where timed, 1 / max(measured, 20 us)
/// where profiled: purely relative errors would let a small kernel outweigh attention, absolute ones would see nothing
/// else. Timed rows that are outliers (beyond 25 % and three standard deviations of their family's errors, told from
/// the median; of at least eight rows) lose their pull, the more the farther off they are; who they are is found again
/// with each solution. Linear, but for which branch of a curve binds: that is chosen anew with each solution until a
/// choice comes round again, as the last one or, where they alternate, an earlier one. Of those tried the best is kept.
/// Constants that no observation mentions are kUnknown, as is one that is a branch by itself which never binds. A cost
/// besides the main one (start-ups, epilogues, what tiles load) that would come out negative is 0. Throws SpecError
/// naming a constant that the observations mention and do not determine, or another one that comes out negative.
[[nodiscard]] Constants solve(const std::vector<Observation>& observations);

[[nodiscard]] inline double evaluate(const Observation& observation, const Constants& constants) {
  return evaluate(observation.curve, constants).us;
}

}  // namespace moeline

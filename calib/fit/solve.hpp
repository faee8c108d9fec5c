// Constants from observations: one least-squares problem for the whole kernel set.
#pragma once

#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

/// Minimises the weighted sum of (fitted - measured)^2; who is an outlier is found again with each solution
/// (solve.cpp). Linear, but for which branch of a curve binds: that is chosen anew with each solution until a choice
/// comes round again, as the last one or, where they alternate, an earlier one. Of those tried the best is kept.
/// Constants that no observation mentions are kUnknown, as is one that is a branch by itself which never binds. A cost
/// besides the main one (start-ups, epilogues, what tiles load) that would come out negative is 0. Throws SpecError
/// naming a constant that the observations mention and do not determine, or another one that comes out negative.
[[nodiscard]] Constants solve(const std::vector<Observation>& observations);

}  // namespace moeline

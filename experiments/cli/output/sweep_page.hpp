// The table of a study, as plots.
#pragma once

#include <vector>

#include "experiments/page/page.hpp"
#include "experiments/sweep/store.hpp"

namespace moeline {

/// What one page is made for: a browser keeps all of its points.
inline constexpr std::size_t kMostPagePoints = 200'000;

/// Lines and a heat map of what the study varies, and the Pareto front of tokens/s per user and per GPU where the table
/// has them, else of its first two metrics with a direction. REQUIRES: at most kMostPagePoints.
[[nodiscard]] Page sweep_page(const Study& study, const std::vector<PointResult>& results);

}  // namespace moeline

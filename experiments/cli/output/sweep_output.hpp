// The table of a study, written out, and as plots.
#pragma once

#include <string>
#include <vector>

#include "experiments/page/page.hpp"
#include "experiments/sweep/store.hpp"

namespace moeline {

/// A row per point: its axes, the metrics that any point has, and why a point failed.
[[nodiscard]] std::string sweep_table(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string sweep_csv(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string sweep_json(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string sweep_schema();

// The table of a study, as plots.

/// What one page is made for: a browser keeps all of its points.
inline constexpr std::size_t kMostPagePoints = 200'000;

/// Lines and a heat map of what the study varies, and the Pareto front of tokens/s per user and per GPU where the table
/// has them, else of its first two metrics with a direction. REQUIRES: at most kMostPagePoints.
[[nodiscard]] Page sweep_page(const Study& study, const std::vector<PointResult>& results);

}  // namespace moeline

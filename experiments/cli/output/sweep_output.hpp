// The table of a study, written out.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep/store.hpp"

namespace moeline {

/// A row per point: its axes, the metrics that any point has, and why a point failed.
[[nodiscard]] std::string sweep_table(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string sweep_csv(const Study& study, const std::vector<PointResult>& results);
/// {"schema_version", "study", "points": [{"id", "axes": {...}, "metrics": {...}, "failure"}]}
[[nodiscard]] std::string sweep_json(const Study& study, const std::vector<PointResult>& results);

}  // namespace moeline

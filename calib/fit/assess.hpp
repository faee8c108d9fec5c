// How well fitted curves meet measurements, seen and unseen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calib/fit/observation.hpp"
#include "hardware/kernel_set.hpp"

namespace moeline {

using Predictions = std::vector<double>;  ///< us, by observation

[[nodiscard]] Predictions predict(const std::vector<Observation>& observations, const Constants& constants);

/// Cross-validation: each fold predicted by a fit to everything else; kUnknown for observations without a fold, and for
/// those of a fold without which the rest does not determine the constants.
[[nodiscard]] Predictions predict_left_out(const std::vector<Observation>& observations, Cut cut = &Observation::fold);

/// predicted / measured - 1; profiled times below a microsecond, the profiler's resolution, count as one.
[[nodiscard]] double error_of(double predicted_us, const Observation& observation);

/// By family, over the observations that have a prediction.
[[nodiscard]] std::map<std::string, FamilyFit> assess(const std::vector<Observation>& observations,
                                                      const Predictions& predictions);

}  // namespace moeline

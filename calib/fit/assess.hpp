// One rule for medians and percentiles of errors, wherever they are printed or written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calib/fit/observation.hpp"
#include "hardware/kernel_set.hpp"

namespace moeline {

/// The value that stands at this share of them in order, the nearest one; NaN of none.
[[nodiscard]] double quantile(std::vector<double> values, double share);

/// Of errors, predicted / measured - 1; NaN where there are none.
struct ErrorSummary {
  double median = 0;  ///< signed
  double median_abs = 0;
  double p95_abs = 0;
};
[[nodiscard]] ErrorSummary summary_of(const std::vector<double>& errors);

// How well fitted curves meet measurements, seen and unseen.

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

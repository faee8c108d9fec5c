// One rule for medians and percentiles of errors, wherever they are printed or written.
#pragma once

#include <vector>

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

}  // namespace moeline

#include "calib/fit/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moeline {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> absolute;
  for (const double error : errors) absolute.push_back(std::abs(error));
  return {quantile(errors, 0.5), quantile(absolute, 0.5), quantile(absolute, 0.95)};
}

}  // namespace moeline

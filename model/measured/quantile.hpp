// The value of a list below which a given share of it lies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace moeline {

/// Of two in the middle the lower one. REQUIRES at least one value; 0 <= share <= 1.
[[nodiscard]] inline std::int64_t quantile(std::vector<std::int64_t> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace moeline

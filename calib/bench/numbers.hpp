// Device formats as doubles, for references.
#pragma once

#include <vector>

namespace moeline::bench {

template <class T>
[[nodiscard]] std::vector<double> numbers(const std::vector<T>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const T& value : values) result.push_back(static_cast<double>(static_cast<float>(value)));
  return result;
}

/// Of a result rounded once to BF16, in units of the results' root mean square: 2^-9 of the largest, some four times
/// it.
inline constexpr double kRoundingTolerance = 0.015;

}  // namespace moeline::bench

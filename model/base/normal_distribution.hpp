// What is known of normal numbers without drawing any.
#pragma once

#include <vector>

namespace moeline {

/// Below which a standard normal number lies with this probability. REQUIRES: 0 < probability < 1.
[[nodiscard]] double normal_quantile(double probability);

/// Expected maximum of `count` independent standard normal numbers (0 for one).
[[nodiscard]] double expected_maximum(int count);

/// Where the `rank`-th smallest of `count` independent numbers, from 0, is expected to lie: the probability of one that
/// is below it, to a hundredth for normal numbers (Blom, 1958).
[[nodiscard]] constexpr double probability_in_order(int rank, int count) { return (rank + 0.625) / (count + 0.25); }

/// Expected values of `count` of them, the smallest first.
[[nodiscard]] std::vector<double> expected_in_order(int count);

}  // namespace moeline

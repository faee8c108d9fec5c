// Results against a reference in double precision, at sampled places.
#pragma once

#include <cstdint>
#include <vector>

namespace moeline::bench {

/// Up to `count` different places of 0 … size−1 in rising order: both ends, and irregular ones between, so that no
/// multiple of a tile's size hides an error.
[[nodiscard]] std::vector<std::int64_t> sampled_places(std::int64_t size, int count = 8);

/// Throws WrongResult if any |got − want| exceeds `tolerance` times the root mean square of `want`, or is no number.
/// REQUIRES: equal, non-zero lengths.
void require_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance);

}  // namespace moeline::bench

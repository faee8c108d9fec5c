// How many tiles the groups of a GEMM need above each other, where chance decides what each group gets.
#pragma once

#include <cmath>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

/// Of all groups together: `least` with the first probability, one more with the next.
struct RowTiles {
  double least = 0;
  std::vector<double> probabilities{1};
};

/// Groups of op.expected_rows and op.rows_deviation, in tiles of so many rows. Groups count as independent.
[[nodiscard]] RowTiles scattered_tiles(const Operator& op, int tile_rows);

struct Moments {
  double mean = 0, deviation = 0;
};

/// Of a function of the number of tiles.
template <typename Function>
[[nodiscard]] Moments moments(const RowTiles& tiles, const Function& of) {
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < tiles.probabilities.size(); ++i) {
    const double value = of(tiles.least + static_cast<double>(i));
    mean += tiles.probabilities[i] * value;
    square += tiles.probabilities[i] * value * value;
  }
  return {mean, tiles.probabilities.size() == 1 ? 0 : std::sqrt(std::max(0.0, square - mean * mean))};
}

}  // namespace moeline

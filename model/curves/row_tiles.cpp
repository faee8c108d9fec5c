#include "curves/row_tiles.hpp"

#include <algorithm>

#include "routing/scatter.hpp"

namespace moeline {
namespace {

// Tails that no sum of tiles would notice.
RowTiles trimmed(RowTiles tiles) {
  constexpr double kNegligible = 1e-9;
  std::vector<double>& p = tiles.probabilities;
  const auto counts = [](double each) { return each > kNegligible; };
  const auto first = std::find_if(p.begin(), p.end(), counts);
  const auto last = std::find_if(p.rbegin(), p.rend(), counts).base();
  tiles.least += static_cast<double>(first - p.begin());
  tiles.probabilities = std::vector<double>(first, last);
  return tiles;
}

RowTiles sum(const RowTiles& a, const RowTiles& b) {
  RowTiles both{a.least + b.least, std::vector<double>(a.probabilities.size() + b.probabilities.size() - 1, 0)};
  for (std::size_t i = 0; i < a.probabilities.size(); ++i) {
    for (std::size_t j = 0; j < b.probabilities.size(); ++j) {
      both.probabilities[i + j] += a.probabilities[i] * b.probabilities[j];
    }
  }
  return trimmed(std::move(both));
}

}  // namespace

// By doubling: a sum of 2n groups is that of n, twice.
RowTiles scattered_tiles(const Operator& op, int tile_rows) {
  RowTiles power = trimmed({0, block_probabilities(op.expected_rows, op.rows_deviation, tile_rows)});
  RowTiles all;
  for (auto groups = static_cast<int>(op.groups); groups > 0; groups /= 2) {
    if (groups % 2 == 1) all = sum(all, power);
    if (groups > 1) power = sum(power, power);
  }
  return all;
}

}  // namespace moeline

// Into which output tiles a GEMM is cut, and how many its groups need.
#pragma once

#include <cmath>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

/// Which output tiles the FP8 GEMMs of a kernel set have.
enum class TileSet {
  narrow,  ///< up to 128x128: DeepSeek's training kernels, and DeepGEMM until March 2025
  wide     ///< up to 256x128 and 128x192: DeepGEMM since April 2025
};

/// Rows and columns of the output that one thread block computes at a time.
struct Tile {
  int m = 128, n = 128;
};

/// The tile of a dense, contiguous or masked GEMM on `sms` SMs. `rows`: those that the tile is chosen for: of the whole
/// GEMM, of each group where the layout is masked.
///   wide     DeepGEMM's rule (heuristics for SM90 of late 2025): fewest waves, then the fullest last wave
///   narrow   the least time at nominal speeds: those kernels were tuned by shape
/// A contiguous group is padded to 128 rows, so its tile has 128.
[[nodiscard]] Tile pick_tile(const Operator& op, double rows, int sms, TileSet tiles);

/// Whether each group is cut into tiles of its own, and its tile chosen for one group's rows: all grouped GEMMs but
/// those whose groups lie contiguously.
[[nodiscard]] bool tile_per_group(Family family);

/// Clocks by which a k-block takes longer, for each number of the tile, where the tile's columns straddle two of the
/// weights' 128-column scales at no simple place: it is added to the accumulator in two pieces, on the CUDA cores,
/// which tiles of at most 128 rows of the wide set hide behind the other half's products. Else 0.
[[nodiscard]] double straddling_clocks(const Tile& tile, TileSet tiles);

// How many tiles the groups of a GEMM need above each other, where chance decides what each group gets.

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

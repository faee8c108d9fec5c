// Into which output tiles an FP8 GEMM is cut.
#pragma once

#include <string_view>

#include "moe/operator.hpp"

namespace moeline {

/// Rows and columns of the output that one thread block computes at a time.
struct Tile {
  int m = 128, n = 128;
};

/// Which tiles the kernels of a set have.
enum class TileSet {
  narrow,  ///< up to 128x128: DeepSeek's training kernels, and DeepGEMM until March 2025
  wide     ///< up to 256x128 and 128x192: DeepGEMM since April 2025
};

/// By the date in the set's name: "deepseek-2025-02", "h800: open-2025-late". Wide for names without a date.
[[nodiscard]] TileSet tile_set(std::string_view kernel_set);

/// The tile of a dense, contiguous or masked GEMM on `sms` SMs. `rows`: those that the tile is chosen for: of the whole
/// GEMM, of each group where the layout is masked.
///   wide     DeepGEMM's rule (heuristics for SM90 of late 2025): fewest waves, then the fullest last wave
///   narrow   the least time at nominal speeds: those kernels were tuned by shape
/// A contiguous group is padded to 128 rows, so its tile has 128.
[[nodiscard]] Tile pick_tile(const Operator& op, double rows, int sms, TileSet tiles);

/// Columns that straddle two of the weights' 128-column scales at no simple place: every k-block is then added to the
/// accumulator in two pieces.
[[nodiscard]] bool straddles_scales(const Tile& tile);

}  // namespace moeline

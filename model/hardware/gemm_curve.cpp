// FP8 GEMMs: persistent kernels whose SMs walk over the tiles of the output, wave by wave.
//   start-up + a fifth of memory + max(compute, four fifths of memory)
//   compute   waves x (k-blocks x (tile at peak + 150 clocks) x mainloop + epilogue)
//   memory    every tensor once at HBM's peak, and half of what the tiles load through the SMs' L2 ports
// A fifth: the first loads and the last stores, which nothing hides. Half: most loads find the port free while HBM
// is waited for. 150 clocks: issue and barriers of a k-block, which small tiles show. These and the two factors below
// are structure: chosen on the tables of late 2025, the same for every kernel set, not among the fitted constants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "hardware/curve.hpp"
#include "hardware/gemm_tiles.hpp"

namespace moeline {
namespace {

constexpr double kBlock = 128;             // of k, and a tile's side where it has the full size
constexpr double kFlopsPerClock = 8192;    // of an SM of Hopper in FP8
constexpr double kPortBytesPerClock = 64;  // from L2 to an SM
constexpr double kBlockClocks = 150;       // of a k-block, whatever the tile
constexpr double kTensorRows = 64;         // a warpgroup's least
constexpr double kUnhiddenMemory = 0.2;    // of the memory time
constexpr double kPortShare = 0.5;         // of the L2 ports' time
constexpr double kClustered = 1.36;        // 64x16 tiles, k 65536: 0.157 us per k-block in pairs, 0.116 alone
// From so many rows on, pairs of SMs share what they load: DeepGEMM's thresholds for TMA multicast, m >= 1024 in its
// early heuristics (get_best_configs) and m >= 512 in the later ones.
constexpr double kClusterRowsNarrow = 1024;
constexpr double kClusterRowsWide = 512;

// A GEMM cut into tiles.
struct Cut {
  Tile tile;
  double tiles = 0;
  double waves = 0;
  double k_blocks = 0;
  bool clustered = false;
};

double flops_per_us(const MachineFacts& machine) { return machine.fp8_tflops * 1e6 / machine.sms; }  // of an SM
double clocks_per_us(const MachineFacts& machine) { return flops_per_us(machine) / kFlopsPerClock; }

double at_peak_us(const Tile& tile, const MachineFacts& machine) {  // one k-block
  const double rows = std::max<double>(tile.m, kTensorRows);
  return 2 * rows * tile.n * kBlock / flops_per_us(machine);
}

double block_us(const Cut& cut, const MachineFacts& machine) {
  const double latency_us = kBlockClocks / clocks_per_us(machine);
  return at_peak_us(cut.tile, machine) * straddling(cut.tile) + latency_us * (cut.clustered ? kClustered : 1);
}

// FP8 operands of one tile and k-block. A pair of SMs shares the longer one.
double block_bytes(const Cut& cut) {
  const double longer = std::max(cut.tile.m, cut.tile.n), shorter = std::min(cut.tile.m, cut.tile.n);
  return (cut.clustered ? longer / 2 + shorter : longer + shorter) * kBlock;
}

double ports_us(const Cut& cut, int sms, const MachineFacts& machine) {
  return cut.tiles * cut.k_blocks * block_bytes(cut) / sms / (kPortBytesPerClock * clocks_per_us(machine));
}

Curve curve_of(const Cut& cut, const Operator& op, int sms, const MachineFacts& machine) {
  const double area = std::max<double>(cut.tile.m, kTensorRows) * cut.tile.n / (kBlock * kBlock);
  const double memory_us = bytes_at_peak_us(op.bytes, machine.hbm_GBps) + kPortShare * ports_us(cut, sms, machine);
  return {{{Constant::gemm_startup, 1}, {Constant::gemm_memory, kUnhiddenMemory * memory_us}},
          {{"compute",
            {{Constant::gemm_mainloop, cut.waves * cut.k_blocks * block_us(cut, machine)},
             {Constant::gemm_epilogue, cut.waves * area}}},
           {"memory", {{Constant::gemm_memory, (1 - kUnhiddenMemory) * memory_us}}}}};
}

// Masked groups share a tile only if their column tiles come in pairs; the narrow kernels never did.
bool clustered(const Operator& op, const Tile& tile, double rows, TileSet tiles) {
  if (op.family != Family::gemm_fp8_masked) {
    return rows >= (tiles == TileSet::wide ? kClusterRowsWide : kClusterRowsNarrow);
  }
  const bool pairs = std::fmod(std::ceil(op.n / tile.n), 2) == 0;
  return tiles == TileSet::wide && pairs && rows >= kClusterRowsWide;
}

// `rows`: those the tile is chosen for. `row_tiles`: tiles above each other, all groups together, by tile.
template <typename RowTiles>
Curve tiled_curve(const Operator& op, double rows, const RowTiles& row_tiles, int sms, const MachineFacts& machine,
                  TileSet tiles) {
  Cut cut;
  cut.tile = pick_tile(op, rows, sms, tiles);
  cut.tiles = row_tiles(cut.tile) * std::ceil(op.n / cut.tile.n);
  cut.waves = std::ceil(cut.tiles / sms);
  cut.k_blocks = std::ceil(op.k / kBlock);
  cut.clustered = clustered(op, cut.tile, rows, tiles);
  return curve_of(cut, op, sms, machine);
}

Curve wgrad_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double waves = std::ceil(std::ceil(op.m / kBlock) * std::ceil(op.n / kBlock) / sms);
  const double mainloop_us = waves * op.k / kBlock * at_peak_us({}, machine);
  return {{}, {{"compute", {{Constant::wgrad_mainloop, mainloop_us}, {Constant::wgrad_epilogue, waves}}}}};
}

}  // namespace

Curve gemm_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles) {
  switch (op.family) {
    case Family::gemm_fp8:
    case Family::gemm_fp8_grouped:
      return tiled_curve(
          op, op.m, [&](const Tile& tile) { return std::ceil(op.m / tile.m); }, sms, machine, tiles);
    case Family::gemm_fp8_masked: {
      const double groups = std::min(op.groups, std::ceil(op.m));  // that have rows
      const double rows = op.m / groups;
      return tiled_curve(
          op, rows, [&](const Tile& tile) { return groups * std::ceil(rows / tile.m); }, sms, machine, tiles);
    }
    case Family::gemm_fp8_wgrad:
      return wgrad_curve(op, sms, machine);
    default:
      moeline::check_failed("an FP8 GEMM", __FILE__, __LINE__, name_of(op.family));
  }
}

Curve masked_gemm_curve(const Operator& op, double expected_rows, const std::vector<int>& rows, int sms,
                        const MachineFacts& machine, TileSet tiles) {
  const auto row_tiles = [&](const Tile& tile) {
    const auto add = [&](double sum, int group) { return sum + std::ceil(static_cast<double>(group) / tile.m); };
    return std::accumulate(rows.begin(), rows.end(), 0.0, add);
  };
  return tiled_curve(op, expected_rows, row_tiles, sms, machine, tiles);
}

}  // namespace moeline

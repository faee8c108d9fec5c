// GEMMs: persistent kernels whose SMs walk over the tiles of the output, wave by wave.
//   start-up + a fifth of memory + max(compute, four fifths of memory)
//   compute   waves x (k-blocks x (tile at peak + 150 clocks) x mainloop + epilogue)
//   memory    every tensor once at HBM's peak, and what the tiles load through the SMs' L2 ports
// A fifth: the first loads and the last stores, which nothing hides. 150 clocks: issue and barriers of a k-block, which
// small tiles show. These and the factors below are structure: chosen on the tables of late 2025, the same for every
// kernel set, not among the fitted constants. A k-block is 128 bytes of k: 128 FP8 or 64 BF16 numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "curves/curve.hpp"
#include "curves/gemm_tiles.hpp"

namespace moeline {
namespace {

constexpr double kBlockBytes = 128;        // of k
constexpr double kTileSide = 128;          // where it has the full size
constexpr double kPortBytesPerClock = 64;  // from L2 to an SM
constexpr double kBlockClocks = 150;       // of a k-block, whatever the tile
constexpr double kTensorRows = 64;         // a warpgroup's least
constexpr double kUnhiddenMemory = 0.2;    // of the memory time
constexpr double kClustered = 1.36;        // 64x16 tiles, k 65536: 0.157 us per k-block in pairs, 0.116 alone
// From so many rows on, pairs of SMs share what they load: DeepGEMM's thresholds for TMA multicast, m >= 1024 in its
// early heuristics (get_best_configs) and m >= 512 in the later ones.
constexpr double kClusterRowsNarrow = 1024;
constexpr double kClusterRowsWide = 512;

// BF16 GEMMs have the same five constants as FP8's, in the same order.
constexpr std::size_t kBf16Offset =
    static_cast<std::size_t>(Constant::bf16_gemm_startup) - static_cast<std::size_t>(Constant::gemm_startup);

Constant of_family(Constant fp8, Family family) {
  return static_cast<Constant>(static_cast<std::size_t>(fp8) +
                               (row_of(family).precision == Precision::bf16 ? kBf16Offset : 0));
}

double bytes_per_number(Family family) { return number_bytes(row_of(family).precision); }

double flops_per_us(Family family, const MachineFacts& machine) {  // of an SM
  return machine.tflops(row_of(family).precision) * 1e6 / machine.sms;
}

// A GEMM cut into tiles.
struct Cut {
  Tile tile;
  double tiles = 0;
  double waves = 0;
  double waves_deviation = 0;  // standard deviation over the mean, by chance
  double k_blocks = 0;
  double straddling_clocks = 0;  // of each of the tile's numbers and k-blocks
  bool clustered = false;
};

// Clocks beside the products, measured on Hopper's SMs. One that multiplies faster is taken to be built to match, so
// that the efficiency stays; beside slower tensor cores (H20's) they take as long as they do.
double clocks_us(double clocks, const MachineFacts& machine) {
  constexpr double kFlopsPerClock = 8192;  // of an SM of H800, in FP8
  const double tflops = std::max(machine.fp8_tflops, 2 * machine.bf16_tflops);
  const double flops_per_clock = tflops * 1e6 / (machine.sms * machine.sm_clock_mhz);
  return clocks / (machine.sm_clock_mhz * std::max(1.0, flops_per_clock / kFlopsPerClock));
}

double area(const Tile& tile) { return std::max<double>(tile.m, kTensorRows) * tile.n; }

double at_peak_us(const Tile& tile, Family family, const MachineFacts& machine) {  // one k-block
  return 2 * area(tile) * kBlockBytes / bytes_per_number(family) / flops_per_us(family, machine);
}

double block_us(const Cut& cut, Family family, const MachineFacts& machine) {
  const double clocks = area(cut.tile) * cut.straddling_clocks + kBlockClocks * (cut.clustered ? kClustered : 1);
  return at_peak_us(cut.tile, family, machine) + clocks_us(clocks, machine);
}

// Operands of one tile and k-block. A pair of SMs shares the longer one.
double block_bytes(const Cut& cut) {
  const double longer = std::max(cut.tile.m, cut.tile.n), shorter = std::min(cut.tile.m, cut.tile.n);
  return (cut.clustered ? longer / 2 + shorter : longer + shorter) * kBlockBytes;
}

double ports_us(const Cut& cut, int sms, const MachineFacts& machine) {
  return clocks_us(cut.tiles * cut.k_blocks * block_bytes(cut) / sms / kPortBytesPerClock, machine);
}

Curve curve_of(const Cut& cut, const Operator& op, int sms, const MachineFacts& machine) {
  const auto memory = [&](double share) -> std::vector<Term> {
    return {{of_family(Constant::gemm_memory, op.family), share * bytes_at_peak_us(op.bytes, machine.hbm_GBps)},
            {of_family(Constant::gemm_ports, op.family), share * ports_us(cut, sms, machine)}};
  };
  const double mainloop_us = cut.waves * cut.k_blocks * block_us(cut, op.family, machine);
  Curve curve;
  curve.always = memory(kUnhiddenMemory);
  curve.always.push_back({of_family(Constant::gemm_startup, op.family), overhead(machine)});
  curve.branches = {{"compute",
                     {{of_family(Constant::gemm_mainloop, op.family), mainloop_us},
                      {of_family(Constant::gemm_epilogue, op.family),
                       overhead(machine, cut.waves * area(cut.tile) / (kTileSide * kTileSide))}},
                     cut.waves_deviation},
                    {"memory", memory(1 - kUnhiddenMemory)}};
  return curve;
}

// Masked groups share a tile only if their column tiles come in pairs; the narrow kernels never did.
bool clustered(const Operator& op, const Tile& tile, double rows, TileSet tiles) {
  if (!tile_per_group(op.family)) {
    return rows >= (tiles == TileSet::wide ? kClusterRowsWide : kClusterRowsNarrow);
  }
  const bool pairs = std::fmod(std::ceil(op.n / tile.n), 2) == 0;
  return tiles == TileSet::wide && pairs && rows >= kClusterRowsWide;
}

// `rows`: those the tile is chosen for. `row_tiles`: tiles above each other, all groups together, by tile.
template <typename RowTilesOf>
Curve tiled_curve(const Operator& op, double rows, const RowTilesOf& row_tiles, int sms, const MachineFacts& machine,
                  TileSet tiles) {
  Cut cut;
  cut.tile = pick_tile(op, rows, sms, tiles);
  const double columns = std::ceil(op.n / cut.tile.n);
  const RowTiles tall = row_tiles(cut.tile);
  const Moments waves = moments(tall, [&](double each) { return std::ceil(each * columns / sms); });
  cut.tiles = columns * moments(tall, [](double each) { return each; }).mean;
  cut.waves = waves.mean;
  cut.waves_deviation = waves.mean > 0 ? waves.deviation / waves.mean : 0;
  cut.k_blocks = std::ceil(op.k * bytes_per_number(op.family) / kBlockBytes);
  if (row_of(op.family).precision == Precision::fp8) cut.straddling_clocks = straddling_clocks(cut.tile, tiles);
  cut.clustered = clustered(op, cut.tile, rows, tiles);
  return curve_of(cut, op, sms, machine);
}

Curve wgrad_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const double waves = std::ceil(std::ceil(op.m / kTileSide) * std::ceil(op.n / kTileSide) / sms);
  const double mainloop_us = waves * op.k / kBlockBytes * at_peak_us({}, op.family, machine);
  return {
      {},
      {{"compute", {{Constant::wgrad_mainloop, mainloop_us}, {Constant::wgrad_epilogue, overhead(machine, waves)}}}}};
}

}  // namespace

Curve gemm_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles) {
  MOELINE_CHECK(is_gemm(op.family), name_of(op.family));
  if (op.family == Family::gemm_fp8_wgrad) return wgrad_curve(op, sms, machine);
  if (tile_per_group(op.family) && !op.group_rows.empty()) {
    return masked_gemm_curve(op, op.expected_rows, op.group_rows, sms, machine, tiles);
  }
  const bool by_chance = tile_per_group(op.family) && op.rows_deviation > 0;
  const double groups = tile_per_group(op.family) ? std::min(op.groups, std::ceil(op.m)) : 1;  // that have rows
  const double rows = op.m / groups;
  const auto row_tiles = [&](const Tile& tile) -> RowTiles {
    if (by_chance) return scattered_tiles(op, tile.m);
    return {groups * std::ceil(rows / tile.m), {1}};
  };
  return tiled_curve(op, by_chance ? op.expected_rows : rows, row_tiles, sms, machine, tiles);
}

Curve with_fp8_constants(Curve curve) {
  const auto replace = [](std::vector<Term>& terms) {
    for (Term& term : terms)
      term.constant = static_cast<Constant>(static_cast<std::size_t>(term.constant) - kBf16Offset);
  };
  replace(curve.always);
  for (Branch& branch : curve.branches) replace(branch.terms);
  return curve;
}

Curve masked_gemm_curve(const Operator& op, double expected_rows, const std::vector<int>& rows, int sms,
                        const MachineFacts& machine, TileSet tiles) {
  const auto row_tiles = [&](const Tile& tile) -> RowTiles {
    const auto add = [&](double sum, int group) { return sum + std::ceil(static_cast<double>(group) / tile.m); };
    return {std::accumulate(rows.begin(), rows.end(), 0.0, add), {1}};
  };
  return tiled_curve(op, expected_rows, row_tiles, sms, machine, tiles);
}

}  // namespace moeline

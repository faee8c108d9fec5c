#include "curves/gemm_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "routing/drawn_loads.hpp"

namespace moeline {
namespace {

// Of one number of a tile and k-block. H800, n 7168 and k 16384: tiles of 256x112 take 1.40 times as long per column as
// 256x128 (m 512), tiles of 128x112 1.10 times (m 256); a number takes 1/32 clock at peak.
constexpr double kStraddling = 0.375 / 32, kHiddenStraddling = 0.1 / 32;

// Two of the weights' 128-column scales, at no simple place.
bool straddles(const Tile& tile) { return 128 % tile.n != 0 && tile.n % 64 != 0; }

double tiles_of(const Tile& tile, const Operator& op, double rows) {
  const double groups = tile_per_group(op.family) ? op.groups : 1;
  return std::ceil(rows / tile.m) * std::ceil(op.n / tile.n) * groups;
}

std::vector<int> heights(const Operator& op, double rows, TileSet tiles) {
  if (op.family == Family::gemm_fp8_grouped) return {128};
  if (tiles == TileSet::narrow) return {64, 128};
  std::vector<int> heights = {64, 128, 256};
  if (!tile_per_group(op.family) && rows <= 16) heights.push_back(16);
  if (!tile_per_group(op.family) && rows <= 32) heights.push_back(32);
  return heights;
}

std::vector<int> widths(TileSet tiles) {
  std::vector<int> widths;
  for (int n = 16; n <= 128; n += 16) widths.push_back(n);
  if (tiles == TileSet::wide) widths.insert(widths.end(), {144, 160, 192});
  return widths;
}

std::vector<Tile> candidates(const Operator& op, double rows, TileSet tiles) {
  std::vector<Tile> candidates;
  for (const int m : heights(op, rows, tiles)) {
    for (const int n : widths(tiles)) {
      if (m <= 128 || n <= 128) candidates.push_back({m, n});  // more does not fit the registers
    }
  }
  return candidates;
}

struct Waves {
  double count = 0, last = 0;  // of tiles in the last wave
};

Waves waves_of(const Tile& tile, const Operator& op, double rows, int sms) {
  const double tiles = tiles_of(tile, op, rows);
  const double count = std::ceil(tiles / sms);
  return {count, tiles - (count - 1) * sms};
}

// DeepGEMM's order between two tiles, the later candidate first.
bool preferred(const Tile& tile, const Waves& waves, const Tile& best, const Waves& least, const Operator& op,
               double rows) {
  if (waves.count != least.count) return waves.count < least.count;
  if (waves.last != least.last) return waves.last > least.last;
  if (tile.m == best.m) return tile.n < best.n;  // less waste
  if (tile.n == best.n) return tile.m < best.m;
  return tile.n > best.n && tile.n <= op.n && tile.m <= rows;
}

Tile pick_wide(const std::vector<Tile>& candidates, const Operator& op, double rows, int sms) {
  Tile best = candidates.front();
  Waves least = waves_of(best, op, rows, sms);
  for (const Tile& tile : candidates) {
    const Waves waves = waves_of(tile, op, rows, sms);
    if (!preferred(tile, waves, best, least, op, rows)) continue;
    best = tile;
    least = waves;
  }
  return best;
}

constexpr double kNominalStraddling = 1 + 32 * kStraddling;

// In steps of a 64x16 tile at peak: the k-block itself, and about six such steps that no tile makes shorter.
double nominal_time(const Tile& tile, const Operator& op, double rows, int sms) {
  const double steps = std::ceil(tile.m / 64.0) * tile.n / 16.0;
  return waves_of(tile, op, rows, sms).count * (steps * (straddles(tile) ? kNominalStraddling : 1) + 6);
}

Tile pick_narrow(const std::vector<Tile>& candidates, const Operator& op, double rows, int sms) {
  Tile best = candidates.front();
  for (const Tile& tile : candidates) {
    const double time = nominal_time(tile, op, rows, sms), least = nominal_time(best, op, rows, sms);
    if (time < least || (time == least && tile.m * tile.n > best.m * best.n)) best = tile;
  }
  return best;
}

}  // namespace

Tile pick_tile(const Operator& op, double rows, int sms, TileSet tiles) {
  const std::vector<Tile> all = candidates(op, rows, tiles);
  return tiles == TileSet::wide ? pick_wide(all, op, rows, sms) : pick_narrow(all, op, rows, sms);
}

bool tile_per_group(Family family) {
  return family == Family::gemm_fp8_masked || family == Family::gemm_bf16_grouped ||
         family == Family::gemm_bf16_batched;
}

double straddling_clocks(const Tile& tile, TileSet tiles) {
  if (!straddles(tile)) return 0;
  return tiles == TileSet::wide && tile.m <= 128 ? kHiddenStraddling : kStraddling;
}

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

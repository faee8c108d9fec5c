// A router map: which experts every token of a measured batch chose, layer by layer.
#pragma once

#include <optional>
#include <vector>

#include "base/csv.hpp"
#include "routing/expert_loads.hpp"
#include "routing/expert_placement.hpp"

namespace moeline {

/// Each layer has a load for every expert, however few its tokens.
inline constexpr std::size_t kMostRoutedLayers = 4096;

/// One layer's tokens.
struct MappedTokens {
  std::vector<int> homes;            ///< of each token: its rank, or its own number where the file names no ranks
  std::vector<std::size_t> experts;  ///< top_k of each token
};

struct RouterMap {
  int experts = 0;
  std::size_t top_k = 0;
  std::vector<int> layers;           ///< as numbered in the file, ascending
  std::vector<MappedTokens> tokens;  ///< of each layer
};

/// What a file is held against; 0: not at all.
struct RouterLimits {
  int experts = 0;  ///< without it, the largest expert of the map is the last
  int ranks = 0;
};

/// Columns token, layer, expert0, expert1, … and, if there, rank. Throws SpecError: other columns, a token twice in a
/// layer, an expert twice in a token, numbers out of range.
[[nodiscard]] RouterMap read_router_map(const CsvTable& table, const RouterLimits& limits);

/// How many tokens chose each expert.
[[nodiscard]] Loads loads_of(const RouterMap& map);

/// Distinct nodes that a token reaches besides its own, on average over the layer's tokens. A token's home is its rank,
/// or its number modulo the GPUs. Exact, but for an expectation over which copy of an expert it takes.
[[nodiscard]] double other_nodes_per_token(const RouterMap& map, std::size_t layer, const Placement& placement);

// Measured routing as CSV, in one of three forms that the first line tells apart:
//   layer,expert,load           one row per layer and expert; with a column `step`, per time step as well
//   token,layer,expert0,…       a router map (load_file.hpp); with a column `rank`, the token's home
//   90,132,40,61,…              numbers without a header: one line per layer, one number per expert

struct LoadFile {
  std::vector<int> steps;        ///< as numbered in the file, ascending
  std::vector<int> layers;       ///< as numbered in the file, ascending
  std::vector<Loads> loads;      ///< of each step
  std::optional<RouterMap> map;  ///< where the file is one: the loads are counted from it

  [[nodiscard]] int experts() const { return static_cast<int>(loads.front().front().size()); }
};

/// Throws SpecError: a file that is none of these, gaps, repetitions, loads below 0 or all 0, other experts than
/// expected.
[[nodiscard]] LoadFile read_load_file(const std::filesystem::path& path, const RouterLimits& limits = {});

}  // namespace moeline

// Measured routing as CSV, in one of three forms that the first line tells apart:
//   layer,expert,load           one row per layer and expert; with a column `step`, per time step as well
//   token,layer,expert0,…       a router map (router_map.hpp); with a column `rank`, the token's home
//   90,132,40,61,…              numbers without a header: one line per layer, one number per expert
#pragma once

#include <optional>

#include "routing/expert_loads.hpp"
#include "routing/router_map.hpp"

namespace moeline {

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

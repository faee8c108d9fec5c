// How the ranks of one expert-parallel group differ in what they get to do, drawn once from the scenario's seed.
#pragma once

#include <vector>

#include "base/random.hpp"

namespace moeline {

struct Scenario;

/// Empty vectors: not at all.
struct RankVariation {
  using ByLayer = std::vector<std::vector<double>>;  ///< by layer and rank
  ByLayer forward_rows, backward_rows;               ///< expert rows over their mean, whose mean over ranks is 1
  std::vector<double> kv_len;                        ///< by rank: mean of its requests
  std::vector<int> requests;                         ///< by rank
  std::vector<double> slowness;                      ///< by rank: time of a kernel over that on rank 0
};

/// About 1: a normal number, cut off at a tenth.
[[nodiscard]] double drawn_factor(double deviation, Random& random);

/// Normal distributions with the standard deviations that the scenario states, each cut off at a tenth of its mean.
[[nodiscard]] RankVariation draw_ranks(const Scenario& scenario);

}  // namespace moeline

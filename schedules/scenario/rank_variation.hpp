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

/// By rank: time of a kernel over that on rank 0, where the GPUs' speeds have this standard deviation over their mean.
[[nodiscard]] std::vector<double> draw_slowness(int ranks, double speed_spread, Random& random);

/// Normal distributions with the standard deviations that the scenario states, each cut off at a tenth of its mean.
[[nodiscard]] RankVariation draw_ranks(const Scenario& scenario);

}  // namespace moeline

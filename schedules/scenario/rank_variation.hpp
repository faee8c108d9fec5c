// How the ranks of one expert-parallel group differ in what they get to do, drawn once from the scenario's seed.
#pragma once

#include <vector>

namespace moeline {

struct Scenario;

/// Empty vectors: not at all.
struct RankVariation {
  using ByLayer = std::vector<std::vector<double>>;  ///< by layer and rank
  ByLayer forward_rows, backward_rows;               ///< expert rows over their mean, whose mean over ranks is 1
  std::vector<double> kv_len;                        ///< by rank: mean of its requests
  std::vector<int> requests;                         ///< by rank
  std::vector<double> slowness;  ///< by simulated rank: times what the mean GPU takes, where it goes by the SMs' clock
};

/// Of the ranks of a group whose GPUs' speeds have this standard deviation over their mean, over the first rank's: it
/// is `first` times as slow as the mean GPU, and the others lie in order as they are expected to.
[[nodiscard]] std::vector<double> expected_slowness(int ranks, double speed_spread, double first);

/// Expected, of the slowest GPU of as many, over the mean one's.
[[nodiscard]] double slowest_of(int ranks, double speed_spread);

/// Normal distributions with the standard deviations that the scenario states, each cut off at a tenth of its mean.
[[nodiscard]] RankVariation draw_ranks(const Scenario& scenario);

/// The same where one rank stands for its group. In the long run all go at the pace of the slowest GPU, so that is the
/// one: as slow as is expected, or on each rank of a pipeline as it is drawn. Of training's chunk it is the mean one.
[[nodiscard]] RankVariation folded_ranks(const Scenario& scenario);

}  // namespace moeline

// Where a placement of experts sends tokens: how many nodes and ranks one token reaches. A token chooses experts; of an
// expert's copies it takes one at random, independently of its other experts' copies.
#pragma once

#include <span>
#include <vector>

#include "routing/expert_placement.hpp"
#include "routing/gating.hpp"
#include "routing/routing.hpp"

namespace moeline {

/// The nodes, or the GPUs, that hold each expert's copies.
class Destinations {
 public:
  enum class Level { node, gpu };
  Destinations(const Placement& placement, int experts, Level level);

  /// Expected number of distinct ones that a token with these experts reaches, over the choice of copies.
  [[nodiscard]] double expected(std::span<const std::size_t> experts);
  /// The same without the token's own.
  [[nodiscard]] double expected_others(std::span<const std::size_t> experts, int own);

 private:
  struct Share {
    std::size_t place;
    double of_copies;
  };
  void find_missed(std::span<const std::size_t> experts);

  std::vector<std::vector<Share>> shares_;  // of each expert
  std::vector<double> missed_;              // probability that no copy taken is there; 1 between calls
  std::vector<std::size_t> touched_;
};

struct SpreadEstimate {
  Spread mean;
  Spread standard_error;
};

/// Of each placement, over the same `tokens` random tokens whose experts are chosen in proportion to `loads`
/// (gating.hpp). Only the choice of experts is random here: the choice of copies is an exact expectation.
/// REQUIRES: tokens > 1, a positive sum of loads.
[[nodiscard]] std::vector<SpreadEstimate> expected_spreads(const Gating& gating, const std::vector<double>& loads,
                                                           std::span<const Placement> placements, unsigned seed,
                                                           int tokens);

}  // namespace moeline

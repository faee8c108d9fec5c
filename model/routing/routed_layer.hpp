// One MoE layer whose experts are not loaded alike: what falls on each rank.
#pragma once

#include <vector>

#include "routing/expert_loads.hpp"
#include "routing/expert_placement.hpp"
#include "routing/gating.hpp"
#include "routing/routing.hpp"

namespace moeline {

struct RoutedLayer {
  Placement placement;
  std::vector<double> slot_shares;  ///< of all token-expert pairs, by slot; sum 1
  std::vector<double> rank_reach;   ///< probability that a token goes to the rank; empty where nobody asked
  Spread spread;                    ///< with the busiest node and rank

  /// Largest share of a rank over the mean.
  [[nodiscard]] double imbalance() const { return spread.busiest_rank_rows; }
};

/// Shares of the token-expert pairs that loads can have: a token chooses an expert once, so no share exceeds 1 / top_k;
/// what is above falls to the other experts in proportion to theirs. REQUIRES: a positive sum, top_k at most the
/// experts.
[[nodiscard]] std::vector<double> attainable_shares(const LayerLoads& loads, int top_k);

/// An expert's pairs are shared evenly by its copies. With `reach` also where tokens go, for the normal all-to-all: the
/// mean numbers of nodes and ranks per token by Monte Carlo over 512 tokens (standard error about 0.5 %; gating.hpp
/// says how scores are distributed), shared among nodes and ranks as if a token's choices were independent.
[[nodiscard]] RoutedLayer routed_layer(const Gating& gating, const LayerLoads& loads, Placement placement, bool reach,
                                       unsigned seed);

/// What the experts of `rank` get when every rank sends `tokens` tokens, top_k pairs each.
[[nodiscard]] ExpertLoad load_of(const RoutedLayer& layer, int rank, double tokens, int top_k);

}  // namespace moeline

// Where tokens go: how many nodes and ranks one token reaches, and how many rows each rank's experts receive.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "architecture/architecture.hpp"
#include "routing/popularity.hpp"

namespace moeline {

/// Expected distinct destinations of one token, the own node and rank included.
struct Spread {
  double nodes_per_token = 0;
  double ranks_per_token = 0;
  // What the busiest gets, over the mean.
  double busiest_node = 1;       ///< tokens that a node gets
  double busiest_rank = 1;       ///< tokens that a rank gets
  double busiest_rank_rows = 1;  ///< token-expert pairs of a rank
};

/// Of `places` with equally many experts each, those that a token's top_k reach, all choices as likely:
/// n (1 - C(E - E/n, k) / C(E, k)).
[[nodiscard]] double expected_places(int places, int experts, int top_k);

/// Of the model's gating with every expert chosen equally often (gating.hpp). Experts lie on `ep` ranks in order, ranks
/// on nodes of `gpus_per_node` in order. Redundant experts are copies: each expert owns an equal share of all slots, a
/// token goes to a uniformly drawn one, so that every slot gets the same load. Exact without groups and copies; else
/// Monte Carlo over 8192 tokens with independent uniform scores, standard error about 0.1 %, drawn once in a process.
/// Thread-safe. REQUIRES: ep divides n_routed_experts + redundant_experts.
[[nodiscard]] Spread expected_spread(const Architecture& model, int ep, int gpus_per_node, unsigned seed = 1,
                                     int redundant_experts = 0);

/// So many tokens, each of which chooses its experts at random.
struct RandomChoice {
  double tokens = 0;
  ExpertChoice of_token{};
  auto operator<=>(const RandomChoice&) const = default;
};

/// What one rank's experts get in one layer.
struct ExpertLoad {
  double rows = 0;                ///< token-expert pairs, each local expert's padded to 128
  double received = 0;            ///< distinct tokens behind them
  double valid = 0;               ///< rows without padding: what a masked layout computes
  double hit = 0;                 ///< local experts that get any rows, expected
  double rows_deviation = 0;      ///< standard deviation of a local expert's valid rows, by chance
  std::vector<int> group_rows{};  ///< of each local expert where they differ: valid ones, rounded up
  double expected_rows = 0;       ///< of a local expert, averaged over all ranks, where they differ
  RandomChoice choice{};          ///< that chance makes it by; no tokens: nothing is left to chance
};

/// One of the parts of equal size, but for remainders, that something is cut into.
struct Piece {
  int index = 0;
  int count = 1;
  /// Of so many things that follow each other, the first that belongs to it or to one behind it.
  [[nodiscard]] int first_of(int whole) const { return static_cast<int>(std::int64_t{whole} * index / count); }
  /// How many of them it has.
  [[nodiscard]] int size_of(int whole) const { return Piece{index + 1, count}.first_of(whole) - first_of(whole); }
};

inline constexpr int kRowPadding = 128;
/// Share of the rows that its GEMMs go through, padded or not, that are no padding.
[[nodiscard]] inline double valid_share(const ExpertLoad& load, double rows) {
  return rows > 0 ? load.valid / rows : 1;
}

/// Rounded up, but for rounding errors.
[[nodiscard]] double whole_rows(double rows);
/// Rows of one expert, in whole tiles.
[[nodiscard]] double padded(double rows);
/// Probability that an expert with so many expected rows gets any, were tokens independent.
[[nodiscard]] double hit(double rows);

/// A rank gets tokens x top-k of the token-expert pairs on average, by chance more or less. Without skew every slot
/// gets the same on average, else some of a rank's more than others (popularity.hpp).
[[nodiscard]] ExpertLoad balanced_load(const Architecture& model, double tokens_per_rank, int ep, const Spread& spread,
                                       int redundant_experts = 0, double skew = 0);

/// The same without chance: each gets the mean.
[[nodiscard]] ExpertLoad exact_load(const Architecture& model, double tokens_per_rank, int ep, const Spread& spread,
                                    int redundant_experts = 0);

/// `factor` times as many rows, spread evenly over the local experts.
[[nodiscard]] ExpertLoad scaled(const ExpertLoad& load, double factor, double local_experts);

/// What those of a rank's `local_experts` experts get that the piece has.
[[nodiscard]] ExpertLoad load_of_experts(const ExpertLoad& load, int local_experts, const Piece& piece);

/// From measured padded rows: on average half a tile of each local expert is padding.
[[nodiscard]] ExpertLoad given_load(const Architecture& model, double padded_rows, int ep, const Spread& spread);

}  // namespace moeline

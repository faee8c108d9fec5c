// What chance makes of a router whose ranks get equally many rows on average: unequal ones in each layer and
// micro-batch. Rows of an expert: the tokens, each of which chooses it with the same probability (binomial).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "routing/routing.hpp"

namespace moeline {

/// Standard deviation of the rows of an expert that a token chooses with `probability`.
[[nodiscard]] double rows_deviation(double mean_rows, double probability);

/// Rows of one expert.
struct RowsOfExpert {
  double mean = 0, deviation = 0;
};
/// Of each expert of a rank, the most popular first.
[[nodiscard]] std::vector<RowsOfExpert> rows_of_rank(const RandomChoice& choice);

/// By number of blocks from 0: how likely it is that the rows fill as many blocks of `block_rows`, the last one begun.
/// Poisson below 50 mean rows, above a normal distribution. REQUIRES: a deviation above 0.
[[nodiscard]] std::vector<double> block_probabilities(double mean_rows, double deviation, int block_rows);

/// Expected rows in whole blocks of `block_rows`. A deviation of 0: always the mean, rounded up but for rounding
/// errors.
[[nodiscard]] double expected_padded(double mean_rows, double deviation, int block_rows);

/// Rows of one expert, drawn. REQUIRES: a deviation above 0.
[[nodiscard]] int drawn_rows(double mean_rows, double deviation, BriefRandom& random);

// What chance makes of a balanced load: which rows each rank's experts get, drawn for all ranks together.

/// One of many draws of what all ranks get.
struct LoadDraw {
  std::uint64_t seed = 0, number = 0;
};

/// What the `rank`-th rank gets in this draw. The load itself where nothing is left to chance. Few tokens choose one by
/// one, each `top_k` different experts, so that the ranks of a draw get all rows that there are. Of many each expert's
/// rows are drawn apart, and then made as unequal between ranks as they are: one rank that has all experts has all
/// rows.
[[nodiscard]] ExpertLoad drawn_load(const ExpertLoad& load, int local_experts, const LoadDraw& draw, int rank);

/// Loads of one rank that stand for all that chance makes of it.
class TypicalLoads {
 public:
  TypicalLoads(ExpertLoad mean, int local_experts);

  /// In order of the experts hit and of the rows: of few that differ each, else 32 or fewer.
  [[nodiscard]] const std::vector<ExpertLoad>& loads() const { return loads_; }
  /// How likely each is; they add up to 1.
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  /// For each of so many ranks, whose tokens choose together, the load that it gets: a position in loads().
  void draw(const LoadDraw& draw, std::vector<std::size_t>& of_ranks) const;

 private:
  [[nodiscard]] std::size_t position_of(const ExpertLoad& load) const;

  ExpertLoad mean_;
  int local_experts_;
  std::vector<ExpertLoad> loads_, least_;  ///< least_: of those that each stands for
  std::vector<double> weights_, until_;    ///< until_: the weights up to and with each
  /// What ranks got in the draws that the loads are from, draw by draw, where another draw would cost much.
  std::vector<std::size_t> drawn_before_;
};

/// Of a load that chance makes. The same ones for whoever asks. Thread-safe.
[[nodiscard]] std::shared_ptr<const TypicalLoads> typical_loads(const ExpertLoad& load, int local_experts);

}  // namespace moeline

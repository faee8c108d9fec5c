// What chance makes of a balanced router: experts that get equally many rows on average get unequal ones in each layer
// and micro-batch. Rows of an expert: the tokens, each of which chooses it with the same probability (binomial).
#pragma once

#include <vector>

#include "base/random.hpp"

namespace moeline {

/// Standard deviation of the rows of an expert that a token chooses with `probability`.
[[nodiscard]] double rows_deviation(double mean_rows, double probability);

/// By number of blocks from 0: how likely it is that the rows fill as many blocks of `block_rows`, the last one begun.
/// Poisson below 50 mean rows, above a normal distribution. REQUIRES: a deviation above 0.
[[nodiscard]] std::vector<double> block_probabilities(double mean_rows, double deviation, int block_rows);

/// Expected rows in whole blocks of `block_rows`. A deviation of 0: always the mean, rounded up but for rounding
/// errors.
[[nodiscard]] double expected_padded(double mean_rows, double deviation, int block_rows);

/// Rows of one expert, drawn. REQUIRES: a deviation above 0.
[[nodiscard]] int drawn_rows(double mean_rows, double deviation, BriefRandom& random);

}  // namespace moeline

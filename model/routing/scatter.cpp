#include "routing/scatter.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"

namespace moeline {
namespace {

constexpr double kFewRows = 50;  // below, rows are counted one by one
constexpr double kTails = 6;     // standard deviations that are looked at

// P(rows <= most): Poisson's terms one by one, or the normal distribution with half a row of continuity.
double at_most(double most, double mean, double deviation) {
  if (mean >= kFewRows) return 0.5 * std::erfc((mean - most - 0.5) / (deviation * std::numbers::sqrt2));
  double term = std::exp(-mean), sum = 0;
  for (double rows = 0; rows <= most; term *= mean / ++rows) sum += term;
  return sum;
}

int poisson(double mean, BriefRandom& random) {
  const double uniform = random.uniform();
  double term = std::exp(-mean), sum = term;
  int rows = 0;
  while (sum < uniform && term > 0) {
    term *= mean / ++rows;
    sum += term;
  }
  return rows;
}

}  // namespace

double rows_deviation(double mean_rows, double probability) {
  MOELINE_CHECK(mean_rows >= 0 && probability >= 0 && probability <= 1, std::to_string(probability));
  return std::sqrt(mean_rows * (1 - probability));
}

std::vector<double> block_probabilities(double mean_rows, double deviation, int block_rows) {
  MOELINE_CHECK(deviation > 0, std::to_string(deviation));
  const double least = mean_rows - kTails * deviation, most = mean_rows + kTails * std::max(deviation, 1.0) + 1;
  const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(least / block_rows)));
  const auto last = static_cast<std::size_t>(std::ceil(most / block_rows));
  std::vector<double> probabilities(last + 1, 0);
  double below = 0;
  for (std::size_t blocks = first; blocks < last; ++blocks) {
    const double up_to = at_most(static_cast<double>(blocks) * block_rows, mean_rows, deviation);
    probabilities[blocks] = up_to - below;
    below = up_to;
  }
  probabilities[last] = 1 - below;
  return probabilities;
}

double expected_padded(double mean_rows, double deviation, int block_rows) {
  constexpr double kRounding = 1e-9;  // of what a sum of shares may exceed a whole number by
  if (deviation == 0) return std::ceil(mean_rows * (1 - kRounding) / block_rows) * block_rows;
  const std::vector<double> probabilities = block_probabilities(mean_rows, deviation, block_rows);
  double blocks = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) blocks += static_cast<double>(i) * probabilities[i];
  return blocks * block_rows;
}

int drawn_rows(double mean_rows, double deviation, BriefRandom& random) {
  MOELINE_CHECK(deviation > 0, std::to_string(deviation));
  if (mean_rows < kFewRows) return poisson(mean_rows, random);
  return static_cast<int>(std::max(0L, std::lround(mean_rows + deviation * random.normal())));
}

}  // namespace moeline

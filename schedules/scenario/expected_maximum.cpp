#include "schedules/scenario/expected_maximum.hpp"

#include <cmath>
#include <numbers>

#include "base/memo.hpp"

namespace moeline {

namespace {

// E[max] = integral over x > 0 of 1 - F(x)^n, less that over x < 0 of F(x)^n, F the normal distribution. Beyond 9
// deviations nothing is left for any number of ranks that a machine can have.
double integrate(int ranks) {
  constexpr double kStep = 0.01;
  constexpr double kFarthest = 9;
  double sum = 0;
  for (double x = kStep / 2; x < kFarthest; x += kStep) {
    const double tail = std::erfc(x / std::numbers::sqrt2) / 2;
    sum += (1 - std::exp(ranks * std::log1p(-tail)) - std::pow(tail, ranks)) * kStep;
  }
  return sum;
}

}  // namespace

// A thousand terms, asked for again and again.
double expected_maximum(int ranks) {
  static Memo<int, double> known;
  return *known.get(ranks, [ranks] { return integrate(ranks); });
}

}  // namespace moeline

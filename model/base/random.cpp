#include "base/random.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "base/memo.hpp"

namespace moeline {

namespace {

// E[max] = integral over x > 0 of 1 - F(x)^n, less that over x < 0 of F(x)^n, F the normal distribution. Beyond 9
// deviations nothing is left for any number of ranks that a machine can have.
double integrate(int count) {
  constexpr double kStep = 0.01;
  constexpr double kFarthest = 9;
  double sum = 0;
  for (double x = kStep / 2; x < kFarthest; x += kStep) {
    const double tail = std::erfc(x / std::numbers::sqrt2) / 2;
    sum += (1 - std::exp(count * std::log1p(-tail)) - std::pow(tail, count)) * kStep;
  }
  return sum;
}

}  // namespace

// A thousand terms, asked for again and again.
double expected_maximum(int count) {
  static Memo<int, double> known;
  return *known.get(count, [count] { return integrate(count); });
}

// By bisection.
double normal_quantile(double probability) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < probability ? low : high) = middle;
  }
  return low;
}

// As many bisections, asked for at every point of a sweep.
std::vector<double> expected_in_order(int count) {
  static Memo<int, std::vector<double>> known;
  return *known.get(count, [count] {
    std::vector<double> expected;
    for (int rank = 0; rank < count; ++rank) expected.push_back(normal_quantile(probability_in_order(rank, count)));
    return expected;
  });
}

namespace {

Normals draw(std::uint64_t seed, std::uint64_t stream, std::size_t count) {
  Random random(seed, stream);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = random.normal();
  return std::make_shared<const std::vector<double>>(std::move(numbers));
}

}  // namespace

Normals normals(std::uint64_t seed, std::uint64_t stream, std::size_t count) {
  constexpr std::size_t kMany = std::size_t{1} << 22U;  // 32 MiB
  static std::mutex mutex;
  static std::map<std::pair<std::uint64_t, std::uint64_t>, Normals> known;
  static std::size_t drawn = 0;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find({seed, stream}); found != known.end()) {
    if (found->second->size() >= count) return found->second;
    count = std::max(count, 2 * found->second->size());
    drawn -= found->second->size();
    known.erase(found);
  }
  if (drawn + count > kMany) {
    known.clear();
    drawn = 0;
  }
  drawn += count;
  return known[{seed, stream}] = draw(seed, stream, count);
}

}  // namespace moeline

#include "experiments/plan/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr double kLongest = 1e7;    // tokens
constexpr int kLengthSteps = 1000;  // equally likely lengths that stand for a continuous distribution

template <class LengthOf>
Lengths of_quantiles(LengthOf length_of) {
  std::vector<double> lengths;
  for (int i = 0; i < kLengthSteps; ++i) {
    const double z = normal_quantile((i + 0.5) / kLengthSteps);
    lengths.push_back(std::clamp(length_of(z), 1.0, kLongest));
  }
  return {lengths, std::vector<double>(kLengthSteps, 1)};
}

Lengths log_normal(double mean, double spread) {
  const double variance = std::log1p(std::pow(spread / mean, 2));
  const Lengths drawn =
      of_quantiles([&](double z) { return std::exp(std::log(mean) - variance / 2 + std::sqrt(variance) * z); });
  return drawn.scaled(mean / drawn.mean());  // what the steps cut off at the ends
}

struct Percentile {
  double z = 0;
  double log_length = 0;
};

double percent(const Spec& spec, const std::string& key) {
  const double value = as_number<double>(key).value_or(0);
  if (value > 0 && value < 100) return value;
  throw spec.error(key, "is no percentile: a number between 0 and 100");
}

Lengths read_percentiles(const Spec& spec) {
  std::vector<std::pair<double, std::string>> keys;
  for (const std::string& key : spec.keys()) keys.emplace_back(percent(spec, key), key);
  if (keys.size() < 2) throw spec.error("", "needs two percentiles or more");
  std::sort(keys.begin(), keys.end());
  std::vector<Percentile> points;
  for (const auto& [share, key] : keys) {
    const double length = std::log(spec.number(key, 1, kLongest));
    if (!points.empty() && length < points.back().log_length) {
      throw spec.error(key, "is shorter than a lower percentile");
    }
    const double z = normal_quantile(share / 100);
    if (!points.empty() && z <= points.back().z) throw spec.error(key, "stands twice");
    points.push_back({z, length});
  }
  return of_quantiles([&](double z) {
    std::size_t right = 1;
    while (right + 1 < points.size() && points[right].z < z) ++right;
    const Percentile& a = points[right - 1];
    const Percentile& b = points[right];
    return std::exp(a.log_length + (b.log_length - a.log_length) * (z - a.z) / (b.z - a.z));
  });
}

Lengths read_histogram(const Spec& spec) {
  constexpr double kRounded = 1e-3;
  const std::vector<double> lengths = spec.numbers("lengths", 1, kLongest);
  const std::vector<double> shares = spec.numbers("shares", 0, 1);
  if (lengths.empty() || lengths.size() != shares.size()) {
    throw spec.error("shares", fmt::format("has {} values for {} lengths", shares.size(), lengths.size()));
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (std::abs(sum - 1) > kRounded) throw spec.error("shares", fmt::format("sum to {:g}, not 1", sum));
  return {lengths, shares};
}

}  // namespace

Lengths::Lengths(std::vector<double> lengths, const std::vector<double>& shares) {
  MOELINE_CHECK(lengths.size() == shares.size() && !lengths.empty(), std::to_string(lengths.size()));
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  double until = 0;
  for (const std::size_t i : order) {
    lengths_.push_back(lengths[i]);
    until_.push_back(until += shares[i] / sum);
    for (std::size_t power = 0; power < moments_.size(); ++power) {
      moments_[power] += shares[i] / sum * std::pow(lengths[i], power);
    }
  }
}

double Lengths::deviation() const { return std::sqrt(std::max(0.0, moment(2) - moment(1) * moment(1))); }

double Lengths::draw(Random& random) const {
  const auto found = std::upper_bound(until_.begin(), until_.end(), random.uniform());
  return lengths_[static_cast<std::size_t>(std::min(found, until_.end() - 1) - until_.begin())];
}

Lengths Lengths::scaled(double factor) const {
  Lengths longer = *this;
  for (double& length : longer.lengths_) length *= factor;
  for (std::size_t power = 0; power < moments_.size(); ++power) longer.moments_[power] *= std::pow(factor, power);
  return longer;
}

Lengths read_lengths(const Spec& spec) {
  spec.expect({"mean", "spread", "percentiles", "lengths", "shares"});
  if (spec.has("percentiles") + spec.has("mean") + spec.has("lengths") != 1) {
    throw spec.error(spec.has("mean") ? "mean" : "percentiles", "one of mean, percentiles and lengths is needed");
  }
  if (spec.has("percentiles")) return read_percentiles(spec.map("percentiles"));
  if (spec.has("lengths")) return read_histogram(spec);
  const double mean = spec.number("mean", 1, kLongest);
  const double spread = spec.has("spread") ? spec.number("spread", 0, 100 * mean) : 0;
  return spread > 0 ? log_normal(mean, spread) : Lengths({mean}, {1});
}

CachedTokens cached_tokens(const Lengths& input, const Lengths& output) {
  const double once = output.moment(1);
  const double produced = output.moment(2) / (2 * once);
  const double produced_squared = output.moment(3) / (3 * once);
  const double variance = std::pow(input.deviation(), 2) + produced_squared - produced * produced;
  return {input.mean() + produced, std::sqrt(std::max(0.0, variance))};
}

}  // namespace moeline

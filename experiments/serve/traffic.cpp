#include "experiments/serve/traffic.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {

namespace {

int drawn_length(const Length& length, Random& random) {
  constexpr double kLongest = 8;
  if (length.most > 0) {
    return length.least + static_cast<int>(random.uniform() * (length.most - length.least + 1));
  }
  if (length.spread == 0) return length.mean;
  const double variance = std::log1p(std::pow(length.spread / length.mean, 2));
  const double drawn = length.mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  return static_cast<int>(std::lround(std::clamp(drawn, 1.0, kLongest * length.mean)));
}

}  // namespace

int long_one(const Length& length) {
  constexpr double kDeviations = 3;
  return std::max(length.most, static_cast<int>(length.mean + kDeviations * length.spread));
}

namespace {

// Gamma distribution of mean 1 (Marsaglia and Tsang, 2000); below shape 1 by way of shape + 1.
double drawn_gamma(double shape, Random& random) {
  if (shape == 1) return -std::log1p(-random.uniform());
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0 || std::log1p(-random.uniform()) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    const double drawn = shape < 1 ? d * v * std::pow(1 - random.uniform(), 1 / shape) : d * v;
    return drawn / shape;
  }
}

std::vector<double> summed_popularity(const Prefixes& prefixes) {
  std::vector<double> sums;
  double sum = 0;
  for (int k = 1; k <= prefixes.count; ++k) sums.push_back(sum += std::pow(k, -prefixes.zipf));
  return sums;
}

}  // namespace

RequestSource::RequestSource(const ServeWorkload& workload, int seed)
    : workload_(workload),
      arrivals_(static_cast<std::uint64_t>(seed), 0),
      lengths_(static_cast<std::uint64_t>(seed), 1),
      prefixes_(static_cast<std::uint64_t>(seed), 2),
      popularity_(summed_popularity(workload.prefixes)) {
  if (workload.rates.empty() && workload.concurrency == 0) next_ms_ = workload.trace.front().arrival_ms;
}

// A trace that begins again does so as long after its last request as these come on average.
double RequestSource::until_next_ms() {
  if (!workload_.rates.empty()) return time_of_arrivals(drawn_gamma(workload_.burstiness, arrivals_));
  const auto& trace = workload_.trace;
  const std::size_t at = static_cast<std::size_t>(taken_) % trace.size();
  if (at > 0) return trace[at].arrival_ms - trace[at - 1].arrival_ms;
  const double all_ms = trace.back().arrival_ms - trace.front().arrival_ms;
  return all_ms / std::max<double>(1, static_cast<double>(trace.size()) - 1);
}

// In which so many come from now on, as rates go.
double RequestSource::time_of_arrivals(double count) const {
  const std::vector<double>& rates = workload_.rates;
  if (rates.size() == 1) return count * 1e3 / rates.front();
  double at_ms = next_ms_;
  while (true) {
    const double slot = std::floor(at_ms / workload_.rate_ms), end_ms = (slot + 1) * workload_.rate_ms;
    const double per_ms = rates[static_cast<std::size_t>(std::fmod(slot, static_cast<double>(rates.size())))] / 1e3;
    const double come = per_ms * (end_ms - at_ms);
    if (come >= count) return at_ms + count / per_ms - next_ms_;
    count -= come;
    at_ms = end_ms;
  }
}

int RequestSource::drawn_prefix() {
  const double at = prefixes_.uniform() * popularity_.back();
  return static_cast<int>(std::upper_bound(popularity_.begin(), popularity_.end(), at) - popularity_.begin());
}

Asked RequestSource::drawn() {
  Asked asked;
  asked.input_len = drawn_length(workload_.input, lengths_);
  asked.output_len = drawn_length(workload_.output, lengths_);
  asked.cached_len = std::min(workload_.cached_len, asked.input_len - 1);
  if (workload_.prefixes.count == 0) return asked;
  asked.prefix = drawn_prefix();
  asked.prefix_len = std::min(workload_.prefixes.len, asked.input_len - 1);
  return asked;
}

Asked RequestSource::take() {
  const auto& trace = workload_.trace;
  const Asked asked = trace.empty() ? drawn() : trace[static_cast<std::size_t>(taken_) % trace.size()].asked;
  ++taken_;
  if (workload_.concurrency == 0 && more()) next_ms_ += until_next_ms();
  return asked;
}

}  // namespace moeline

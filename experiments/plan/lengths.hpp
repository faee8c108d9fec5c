// How long prompts and answers are.
#pragma once

#include <array>
#include <vector>

#include "base/random.hpp"
#include "base/spec.hpp"

namespace moeline {

/// A distribution of lengths in tokens, as lengths with shares that sum to 1, ascending.
class Lengths {
 public:
  /// REQUIRES: as many shares as lengths, not negative, not all 0; lengths positive. Shares are scaled to sum to 1.
  Lengths(std::vector<double> lengths, const std::vector<double>& shares);

  /// E[length^power] of the powers 0 to 3.
  [[nodiscard]] double moment(std::size_t power) const { return moments_.at(power); }
  [[nodiscard]] double mean() const { return moment(1); }
  [[nodiscard]] double deviation() const;
  [[nodiscard]] double longest() const { return lengths_.back(); }
  /// Mean of the lengths that tokens see, instead of requests: E[length^2] / E[length].
  [[nodiscard]] double mean_of_tokens() const { return moment(2) / moment(1); }
  [[nodiscard]] double draw(Random& random) const;
  [[nodiscard]] Lengths scaled(double factor) const;

 private:
  std::vector<double> lengths_;
  std::vector<double> until_;  // share of all lengths up to this one
  std::array<double, 4> moments_{};
};

/// One of
///   {mean: 4000}                                          all alike
///   {mean: 4000, spread: 3000}                            log-normal, with this standard deviation
///   {percentiles: {50: 2000, 90: 9000, 99: 30000}}        of which the logarithm is linear between them in the normal
///                                                         quantile, and beyond the ends as between the two next to
///                                                         them
///   {lengths: [500, 4000, 16000], shares: [0.5, 0.4, 0.1]}
/// Throws SpecError: shares that do not sum to 1, percentiles that fall.
[[nodiscard]] Lengths read_lengths(const Spec& spec);

/// The cached tokens of the requests that decode at one time: a request of input i and output o is seen for o steps,
/// with i + o/2 tokens on average. Input and output are taken as independent.
struct CachedTokens {
  double mean = 0, deviation = 0;
};
[[nodiscard]] CachedTokens cached_tokens(const Lengths& input, const Lengths& output);

}  // namespace moeline

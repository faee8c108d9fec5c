// Distributions of lengths, and what follows from them.
#include "experiments/plan/lengths.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/refusal.hpp"

TEST_SUITE("plan/lengths") {

using namespace moeline;

namespace {

Lengths lengths(const std::string& text) { return read_lengths(Spec::parse("lengths.yaml", text)); }

std::string refusal(const std::string& text) {
  return testing::refusal_of([&] { (void)lengths(text); });
}

double share_below(const Lengths& all, double length) {
  Random random(1);
  int below = 0;
  for (int i = 0; i < 20000; ++i) below += all.draw(random) <= length ? 1 : 0;
  return below / 20000.0;
}

}  // namespace

TEST_CASE("a log-normal distribution has the mean and the spread that it was given") {
  const Lengths all = lengths("{mean: 4000, spread: 3000}");
  CHECK(all.mean() == doctest::Approx(4000));
  CHECK(all.deviation() == doctest::Approx(3000).epsilon(0.03));  // a thousand steps end before the tail does
  CHECK(lengths("{mean: 4000}").deviation() == doctest::Approx(0));
}

TEST_CASE("percentiles are those that were given") {
  const Lengths all = lengths("{percentiles: {50: 2000, 90: 9000, 99: 30000}}");
  CHECK(share_below(all, 2000) == doctest::Approx(0.50).epsilon(0.02));
  CHECK(share_below(all, 9000) == doctest::Approx(0.90).epsilon(0.01));
  CHECK(share_below(all, 30000) == doctest::Approx(0.99).epsilon(0.005));
}

TEST_CASE("moments of a histogram are those of its lengths") {
  const Lengths all = lengths("{lengths: [1000, 100], shares: [0.25, 0.75]}");
  CHECK(all.mean() == doctest::Approx(325));
  CHECK(all.moment(2) == doctest::Approx(0.25 * 1e6 + 0.75 * 1e4));
  CHECK(all.mean_of_tokens() == doctest::Approx(257500 / 325.0));
  CHECK(all.scaled(2).moment(2) == doctest::Approx(4 * all.moment(2)));
  CHECK(share_below(all, 100) == doctest::Approx(0.75).epsilon(0.02));
}

TEST_CASE("requests that decode are seen in the middle of their answers, the long ones more often") {
  const CachedTokens alike = cached_tokens(lengths("{mean: 4383}"), lengths("{mean: 1211}"));
  CHECK(alike.mean == doctest::Approx(4383 + 1211 / 2.0));
  CHECK(alike.deviation == doctest::Approx(1211 / std::sqrt(12.0)));  // anywhere in the answer
  // Of answers of 100 and 1000, one each, 10 of 11 that are seen are long ones.
  const CachedTokens mixed = cached_tokens(lengths("{mean: 1}"), lengths("{lengths: [100, 1000], shares: [0.5, 0.5]}"));
  CHECK(mixed.mean == doctest::Approx(1 + (50 + 10 * 500) / 11.0));
}

TEST_CASE("distributions that are none are refused by key") {
  CHECK(refusal("{lengths: [1, 2], shares: [0.5, 0.4]}").find("shares sum to 0.9, not 1") != std::string::npos);
  CHECK(refusal("{lengths: [1, 2], shares: [1]}").find("1 values for 2 lengths") != std::string::npos);
  CHECK(refusal("{percentiles: {50: 2000, 90: 1000}}").find("90 is shorter than a lower percentile") !=
        std::string::npos);
  CHECK(refusal("{percentiles: {50: 2000}}").find("two percentiles") != std::string::npos);
  CHECK(refusal("{percentiles: {50: 2000, 100: 9000}}").find("no percentile") != std::string::npos);
  CHECK(refusal("{mean: 10, lengths: [1], shares: [1]}").find("one of mean, percentiles and lengths") !=
        std::string::npos);
  CHECK(refusal("{men: 10}").find("did you mean 'mean'?") != std::string::npos);
}

}  // TEST_SUITE("plan/lengths")

// Experts that are not chosen alike: how often each is, and what that makes of a step's loads.
#include "routing/popularity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "routing/drawn_loads.hpp"
#include "tests/support/routed_model.hpp"

TEST_SUITE("routing/popularity") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr int kExperts = 128, kTopK = 8;

ExpertChoice on_ranks(int ranks, double skew) { return {kTopK, kExperts, ranks, skew}; }

template <class Number>
Number sum(const std::vector<Number>& values) {
  return std::accumulate(values.begin(), values.end(), Number{});
}

ExpertLoad load_of_tokens(double tokens, const ExpertChoice& choice) {
  return balanced_load(routed_model(kExperts, 1, 1), tokens / choice.ranks, choice.ranks, {1, 1}, 0, choice.skew);
}

}  // namespace

TEST_CASE("a token chooses top_k experts, the popular ones more often, and all alike without skew") {
  for (const int ranks : {1, 8, 64}) {
    for (const double skew : {0.0, 0.3, 1.2, 4.0, 16.0}) {
      const std::vector<double> of_rank = chances_of(on_ranks(ranks, skew));
      CHECK(of_rank.size() == kExperts / static_cast<std::size_t>(ranks));
      CHECK(sum(of_rank) * ranks == doctest::Approx(kTopK));
      CHECK(std::is_sorted(of_rank.rbegin(), of_rank.rend()));
      CHECK(of_rank.front() <= 1);
    }
  }
  CHECK(chances_of(on_ranks(1, 0)).back() == doctest::Approx(1.0 * kTopK / kExperts));
  CHECK(chances_of({8, 8, 1, 3}).back() == 1);  // of eight experts eight are all
}

TEST_CASE("a skew of 1.2 reaches the experts that were read off a trace, and no skew reaches what chance does") {
  constexpr double kRead = 51.5, kBalanced = 82.3;  // of 128, by 16 tokens of Qwen3-30B-A3B on B300
  CHECK(experts_hit(16, on_ranks(1, 1.2)) == doctest::Approx(kRead).epsilon(0.03));
  CHECK(experts_hit(16, on_ranks(1, 0)) == doctest::Approx(kBalanced).epsilon(0.005));
}

TEST_CASE("tokens drawn one by one reach as many experts as the chances say, and each takes top_k of them") {
  for (const int ranks : {1, 8}) {
    for (const double skew : {0.5, 1.2, 2.5}) {
      for (const int tokens : {1, 16, 100}) {
        constexpr int kDraws = 200;
        BriefRandom random(3);
        TokenChoices choices(on_ranks(ranks, skew));
        double hit = 0;
        for (int draw = 0; draw < kDraws; ++draw) {
          std::vector<int> rows(kExperts, 0);
          for (int token = 0; token < tokens; ++token) choices.add_token(random, rows);
          CHECK(sum(rows) == tokens * kTopK);
          CHECK(*std::max_element(rows.begin(), rows.end()) <= tokens);
          hit += static_cast<double>(std::count_if(rows.begin(), rows.end(), [](int n) { return n > 0; })) / kDraws;
        }
        CHECK(hit == doctest::Approx(experts_hit(tokens, on_ranks(ranks, skew))).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("a skew is found again by the experts that it reaches") {
  for (const int ranks : {1, 8}) {
    for (const double skew : {0.1, 1.2, 3.0}) {
      const double hit = experts_hit(64, on_ranks(ranks, skew));
      CHECK(skew_that_hits(hit, 64, on_ranks(ranks, 0)) == doctest::Approx(skew).epsilon(1e-6));
    }
  }
  CHECK(skew_that_hits(kExperts, 64, on_ranks(1, 0)) == 0);
  CHECK(skew_that_hits(kTopK, 1, on_ranks(1, 0)) == 0);  // one token reaches its own, however it chooses
}

TEST_CASE("ranks get the same on average, and those that stand for all have their mean, of few tokens and of many") {
  for (const double tokens : {8.0, 64.0, 1024.0, 65536.0}) {
    const ExpertLoad load = load_of_tokens(tokens, on_ranks(8, 1.2));
    CHECK(load.valid == doctest::Approx(tokens * kTopK / 8));
    const auto typical = typical_loads(load, kExperts / 8);
    double valid = 0, hit = 0;
    for (std::size_t i = 0; i < typical->loads().size(); ++i) {
      valid += typical->weights()[i] * typical->loads()[i].valid;
      hit += typical->weights()[i] * typical->loads()[i].hit;
    }
    CHECK(valid == doctest::Approx(load.valid).epsilon(0.02));
    CHECK(hit == doctest::Approx(load.hit).epsilon(0.05));
  }
}

TEST_CASE("with many tokens skew changes which experts get rows, and hardly how many") {
  const ExpertLoad skewed = load_of_tokens(65536, on_ranks(8, 1.2));
  const ExpertLoad alike = load_of_tokens(65536, on_ranks(8, 0));
  CHECK(skewed.hit == doctest::Approx(alike.hit).epsilon(1e-3));
  CHECK(skewed.rows == doctest::Approx(alike.rows).epsilon(0.01));
  CHECK(skewed.rows_deviation > 10 * alike.rows_deviation);
}

TEST_CASE("any part of a rank's experts gets its share of rows: popular ones lie among the others") {
  for (const double tokens : {8.0, 64.0, 65536.0}) {
    const ExpertLoad load = load_of_tokens(tokens, on_ranks(8, 1.2));
    double first = 0, second = 0;
    constexpr int kDraws = 200;
    for (int draw = 0; draw < kDraws; ++draw) {
      const ExpertLoad drawn = drawn_load(load, kExperts / 8, {1, static_cast<std::uint64_t>(draw)}, draw % 8);
      first += load_of_experts(drawn, kExperts / 8, {0, 2}).valid;
      second += load_of_experts(drawn, kExperts / 8, {1, 2}).valid;
    }
    CHECK(first / second == doctest::Approx(1).epsilon(0.25));
  }
}

TEST_CASE("a part of a rank's experts gets what a rank gets that has no more, of few tokens and of many") {
  for (const double tokens : {8.0, 65536.0}) {
    for (const int parts : {2, 3}) {  // of 16 experts: equal ones, and others
      const ExpertLoad part = load_of_experts(load_of_tokens(tokens, on_ranks(8, 1.2)), kExperts / 8, {0, parts});
      const auto typical = typical_loads(part, kExperts / 8 / parts);
      double valid = 0;
      for (std::size_t i = 0; i < typical->loads().size(); ++i) {
        valid += typical->weights()[i] * typical->loads()[i].valid;
      }
      CHECK(valid == doctest::Approx(part.valid).epsilon(0.1));  // one stands for several of the rare ones
    }
  }
}

}  // TEST_SUITE("routing/popularity")

// What chance makes of a balanced router, against draws of it.
#include "routing/drawn_loads.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "curves/gemm_tiles.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("routing/scatter") {

using namespace moeline;
using namespace moeline::testing;

namespace {

double blocks(double rows, int of) { return std::ceil(rows / of); }

// Rows of an expert, token by token.
int chosen(int tokens, double probability, BriefRandom& random) {
  int rows = 0;
  for (int token = 0; token < tokens; ++token) rows += random.uniform() < probability ? 1 : 0;
  return rows;
}

double experts_us(const char* distribution, int rows) {
  // 128 ranks x batch / 2 x 8 / 256 experts: rows of an expert in each of two micro-batches
  const std::string batch = "workload.batch_size=" + std::to_string(rows / 2);
  const Run run = run_decode({"layers=4", "ranks=folded", "kernels=deepseek-2025-02", batch,
                              std::string("routing.distribution=") + distribution});
  return solo_us(run, "mlp", "expert gate_up") + solo_us(run, "mlp", "expert down");
}

}  // namespace

TEST_CASE("blocks that rows fill are as likely as in draws, token by token") {
  BriefRandom random(1);
  constexpr std::pair<int, double> kExperts[] = {{512, 1.0 / 128}, {4096, 1.0 / 32}, {8192, 1.0 / 32}};
  for (const auto& [tokens, probability] : kExperts) {
    const double mean = tokens * probability, deviation = rows_deviation(mean, probability);
    for (const int block : {64, 128}) {
      const std::vector<double> expected = block_probabilities(mean, deviation, block);
      CHECK(std::accumulate(expected.begin(), expected.end(), 0.0) == doctest::Approx(1));
      std::vector<double> drawn(expected.size() + 1, 0);
      constexpr int kDraws = 2000;
      for (int i = 0; i < kDraws; ++i) {
        const auto filled = static_cast<std::size_t>(blocks(chosen(tokens, probability, random), block));
        drawn[std::min(filled, expected.size())] += 1.0 / kDraws;
      }
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(drawn[i] == doctest::Approx(expected[i]).epsilon(0.04));
    }
  }
}

TEST_CASE("rows drawn have the mean and the deviation they are drawn with") {
  BriefRandom random(1);
  for (const double mean : {3.0, 40.0, 256.0}) {
    const double deviation = rows_deviation(mean, 1.0 / 32);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double rows = drawn_rows(mean, deviation, random);
      sum += rows;
      squares += rows * rows;
    }
    CHECK(sum / kDraws == doctest::Approx(mean).epsilon(0.01));
    CHECK(std::sqrt(squares / kDraws - std::pow(sum / kDraws, 2)) == doctest::Approx(deviation).epsilon(0.03));
  }
}

TEST_CASE("chance begins half a block more, and as much for few rows that lie on a boundary") {
  CHECK(expected_padded(8192, 0, 128) == 8192);
  CHECK(expected_padded(8192, 89, 128) == doctest::Approx(8192 + 64).epsilon(1e-3));
  CHECK(expected_padded(256, 15.7, 128) == doctest::Approx(256 + 64).epsilon(0.01));
  CHECK(expected_padded(200, 13.9, 128) == doctest::Approx(256).epsilon(0.001));
}

TEST_CASE("the tiles of several groups are the sum of draws of each") {
  Operator op;
  op.groups = 9;
  op.expected_rows = 256;
  op.rows_deviation = 15.7;
  const RowTiles tiles = scattered_tiles(op, 128);
  const Moments expected = moments(tiles, [](double each) { return each; });
  CHECK(expected.mean == doctest::Approx(9 * expected_padded(256, 15.7, 128) / 128));
  BriefRandom random(1);
  double squares = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    double sum = 0;
    for (int group = 0; group < 9; ++group) sum += blocks(drawn_rows(256, 15.7, random), 128);
    squares += std::pow(sum - expected.mean, 2);
  }
  CHECK(std::sqrt(squares / kDraws) == doctest::Approx(expected.deviation).epsilon(0.05));
}

TEST_CASE("chance costs experts two fifths of their time at 256 rows, next to nothing at 200 and 300") {
  CHECK(experts_us("balanced", 256) > 1.3 * experts_us("exact", 256));
  CHECK(experts_us("balanced", 256) < 1.5 * experts_us("exact", 256));
  CHECK(experts_us("balanced", 200) == doctest::Approx(experts_us("exact", 200)).epsilon(0.01));
  CHECK(experts_us("balanced", 300) == doctest::Approx(experts_us("exact", 300)).epsilon(0.01));
}

namespace {

ExpertLoad mixtral_load(double tokens_per_rank, int ep) {
  const Architecture model = load_architecture("mixtral-8x7b");
  return balanced_load(model, tokens_per_rank, ep, expected_spread(model, ep, 8));
}

double mean_over(const TypicalLoads& typical, double ExpertLoad::*what) {
  double sum = 0;
  for (std::size_t i = 0; i < typical.loads().size(); ++i) sum += typical.weights()[i] * (typical.loads()[i].*what);
  return sum;
}

}  // namespace

TEST_CASE("a token chooses two different experts, and one rank that has all of them has both rows") {
  const auto one = typical_loads(mixtral_load(1, 1), 8), many = typical_loads(mixtral_load(600, 1), 8);
  for (const ExpertLoad& drawn : one->loads()) {
    CHECK(drawn.hit == 2);
    CHECK(drawn.valid == 2);
  }
  for (const ExpertLoad& drawn : many->loads()) CHECK(drawn.valid == 1200);
}

TEST_CASE("typical loads have the mean of all, and of few tokens as many experts hit as are expected") {
  for (const double tokens : {1.0, 4.0, 32.0, 1000.0}) {
    CAPTURE(tokens);
    const ExpertLoad load = mixtral_load(tokens, 4);
    const auto typical = typical_loads(load, 2);
    CHECK(std::accumulate(typical->weights().begin(), typical->weights().end(), 0.0) == doctest::Approx(1));
    CHECK(mean_over(*typical, &ExpertLoad::valid) == doctest::Approx(load.valid).epsilon(0.03));
    const double expected = 2 * (1 - std::pow(1 - 2.0 / 8, 4 * tokens));
    CHECK(mean_over(*typical, &ExpertLoad::hit) == doctest::Approx(expected).epsilon(0.03));
  }
}

TEST_CASE("what few tokens choose goes to one rank or another: of a draw, ranks have all of it together") {
  const ExpertLoad load = mixtral_load(1, 4);  // four tokens, eight choices
  for (std::uint64_t number = 0; number < 100; ++number) {
    double rows = 0;
    for (int rank = 0; rank < 4; ++rank) rows += drawn_load(load, 2, {1, number}, rank).valid;
    CHECK(rows == 8);
  }
}

TEST_CASE("ranks get loads that are typical, as often as these are likely, and together all rows") {
  const ExpertLoad load = mixtral_load(1, 4);
  const auto typical = typical_loads(load, 2);
  std::vector<double> often(typical->loads().size(), 0);
  constexpr int kDraws = 4000;
  for (std::uint64_t number = 0; number < kDraws; ++number) {
    std::vector<std::size_t> of_ranks(4);
    typical->draw({7, number}, of_ranks);
    double rows = 0;
    for (const std::size_t position : of_ranks) {
      rows += typical->loads()[position].valid;
      often[position] += 0.25 / kDraws;
    }
    CHECK(rows == 8);
  }
  for (std::size_t i = 0; i < often.size(); ++i) CHECK(std::abs(often[i] - typical->weights()[i]) < 0.015);
}

}  // TEST_SUITE("routing/scatter")

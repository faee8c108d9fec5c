// A layer whose experts are loaded unequally: what falls on each rank, and what the transfers have to carry.
#include "routing/routed_layer.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/routed_model.hpp"

TEST_SUITE("routing/routed_layer") {

using namespace moeline;

namespace {

const Gating kDeepSeek{256, 8, 8, 4};

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

LayerLoads power_law(double alpha) { return expert_loads({LoadDistribution::power_law, alpha, 1, {}}, 1, 256).front(); }

RoutedLayer routed(const LayerLoads& loads, const Placement& placement) {
  return routed_layer(kDeepSeek, loads, placement, true, 1);
}

double all_rows(const RoutedLayer& layer, double tokens) {
  double rows = 0;
  for (int rank = 0; rank < layer.placement.gpus; ++rank) rows += load_of(layer, rank, tokens, 8).valid;
  return rows;
}

}  // namespace

TEST_CASE("no expert gets more than every token, and what it cannot get falls to the others") {
  const std::vector<double> shares = attainable_shares({100, 1, 1, 1, 1, 1, 1, 1}, 2);
  CHECK(shares[0] == 0.5);  // of two choices, one
  for (std::size_t i = 1; i < 8; ++i) CHECK(shares[i] == doctest::Approx(0.5 / 7));
  CHECK(sum(attainable_shares(power_law(1), 8)) == doctest::Approx(1));
  CHECK(attainable_shares({2, 1, 1}, 1) == std::vector<double>{0.5, 0.25, 0.25});
}

TEST_CASE("every token-expert pair lands on some rank, with and without copies") {
  const Placement spread = place_experts(power_law(1), {256, 288, 8, 18, 144});
  for (const Placement& placement : {in_order(256, 32, 4), in_order(256, 144, 18), spread}) {
    CHECK(all_rows(routed(power_law(1), placement), 100) == doctest::Approx(100.0 * placement.gpus * 8));
  }
}

TEST_CASE("equal loads give what exactly balanced routing gives") {
  const Architecture model = testing::routed_model(256, 8, 4);
  const RoutedLayer layer = routed(LayerLoads(256, 1.0), in_order(256, 32, 4));
  const Spread spread = expected_spread(model, 32, 8);
  CHECK(layer.imbalance() == doctest::Approx(1));
  CHECK(layer.spread.nodes_per_token == doctest::Approx(spread.nodes_per_token).epsilon(0.02));
  CHECK(layer.spread.ranks_per_token == doctest::Approx(spread.ranks_per_token).epsilon(0.02));
  CHECK(layer.spread.busiest_node == doctest::Approx(1));
  const ExpertLoad here = load_of(layer, 5, 4096, 8), balanced = exact_load(model, 4096, 32, spread);
  CHECK(here.valid == doctest::Approx(balanced.valid));
  CHECK(here.rows == doctest::Approx(balanced.rows));
  CHECK(here.received == doctest::Approx(balanced.received).epsilon(0.02));
}

TEST_CASE("the busiest rank and node get more than the mean, and EPLB brings both down") {
  const RoutedLayer before = routed(power_law(1), in_order(256, 32, 4));
  const RoutedLayer after = routed(power_law(1), place_experts(power_law(1), {256, 288, 8, 4, 32}));
  CHECK(before.imbalance() > 3);
  CHECK(after.imbalance() < 0.6 * before.imbalance());
  CHECK(before.spread.busiest_rank > 2);
  CHECK(before.spread.busiest_rank < before.imbalance());  // a token goes once to a rank, however many of its experts
  CHECK(after.spread.busiest_rank < before.spread.busiest_rank);
  CHECK(after.spread.busiest_node <= before.spread.busiest_node);
}

TEST_CASE("ranks without an own share of the experts have one expert less") {
  const RoutedLayer layer = routed(power_law(0.5), in_order(256, 144, 18));
  std::size_t experts = 0;
  for (int rank = 0; rank < 144; ++rank) {
    const std::size_t local = load_of(layer, rank, 64, 8).group_rows.size();
    CHECK((local == 1 || local == 2));
    experts += local;
  }
  CHECK(experts == 256);
}

}  // TEST_SUITE("routing/routed_layer")

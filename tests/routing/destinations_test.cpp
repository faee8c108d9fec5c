// Where tokens go: drawn ones and those of a router map.
#include "routing/destinations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "routing/load_file.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/process.hpp"
#include "tests/support/routed_model.hpp"

TEST_SUITE("routing/destinations") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Level = Destinations::Level;
using Experts = std::vector<std::size_t>;

const Gating kDeepSeek = {256, 8, 8, 4};

LayerLoads power_law(double alpha) { return expert_loads({LoadDistribution::power_law, alpha, 1, {}}, 1, 256).front(); }

// Half the sum of differences between the shares given and those drawn.
double differing_share(const Gating& gating, const LayerLoads& loads) {
  constexpr int kTokens = 50'000;
  TokenStream stream(gating, 1, loads);
  LayerLoads drawn(loads.size());
  for (int token = 0; token < kTokens; ++token) {
    for (const std::size_t expert : stream.next()) drawn[expert] += 1.0 / kTokens / gating.top_k;
  }
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  double differing = 0;
  for (std::size_t e = 0; e < loads.size(); ++e) differing += std::abs(drawn[e] - loads[e] / sum) / 2;
  return differing;
}

// A router map as text: tokens that choose by the gating, of one layer.
std::string map_text(const Gating& gating, const LayerLoads& loads, int tokens) {
  TokenStream stream(gating, 3, loads);
  std::string text = "token,layer,expert0,expert1,expert2,expert3\n";
  for (int token = 0; token < tokens; ++token) {
    text += std::to_string(token) + ",0";
    for (const std::size_t expert : stream.next()) text += "," + std::to_string(expert);
    text += "\n";
  }
  return text;
}

RouterMap map_of(const std::string& text, const RouterLimits& limits = {}) {
  const TemporaryFolder folder;
  return read_router_map(CsvTable(folder.write("map.csv", text)), limits);
}

}  // namespace

TEST_CASE("equal loads in order reach what the balanced spread says, token by token") {
  for (const auto& [groups, kept] : {std::pair{8, 4}, {4, 4}}) {
    const Architecture model = testing::routed_model(256, groups, kept);
    const std::vector<Placement> placements = {in_order(256, 32, 4), in_order(256, 64, 8)};
    const auto spreads = expected_spreads(gating_of(model), LayerLoads(256, 3.0), placements, 1, 8192);
    for (std::size_t i = 0; i < 2; ++i) {
      const Spread balanced = expected_spread(model, placements[i].gpus, 8);
      CHECK(spreads[i].mean.nodes_per_token == doctest::Approx(balanced.nodes_per_token).epsilon(1e-9));
      CHECK(spreads[i].mean.ranks_per_token == doctest::Approx(balanced.ranks_per_token).epsilon(1e-9));
    }
  }
}

TEST_CASE("the balanced spread is what it was, to the last digit") {
  const Architecture model = testing::routed_model(256, 8, 4);
  CHECK(expected_spread(model, 32, 8).nodes_per_token == 3.1199951171875);
  CHECK(expected_spread(model, 64, 8).ranks_per_token == 7.4747314453125);
}

TEST_CASE("drawn tokens choose experts in proportion to their loads, groups distort that by some percent") {
  CHECK(differing_share({256, 8, 1, 1}, power_law(0.6)) < 0.012);  // chance alone: 0.009
  CHECK(differing_share(kDeepSeek, power_law(0.6)) < 0.05);
  CHECK(differing_share(kDeepSeek, power_law(0.3)) < 0.03);
}

TEST_CASE("a token chooses each expert once, and never one without load while others have some") {
  LayerLoads loads(64, 1.0);
  for (std::size_t e = 0; e < 32; ++e) loads[2 * e] = 0;
  TokenStream stream({64, 8, 8, 4}, 1, loads);
  for (int token = 0; token < 1000; ++token) {
    const Experts& experts = stream.next();
    CHECK(std::set<std::size_t>(experts.begin(), experts.end()).size() == 8);
    CHECK(std::all_of(experts.begin(), experts.end(), [](std::size_t e) { return e % 2 == 1; }));
  }
}

TEST_CASE("loads of many orders of magnitude are drawn in order, without underflow") {
  LayerLoads loads(16);
  for (std::size_t e = 0; e < 16; ++e) loads[e] = std::pow(1e-6, static_cast<double>(e));
  TokenStream stream({16, 8, 1, 1}, 1, loads);
  int in_order = 0;
  for (int token = 0; token < 1000; ++token) {
    Experts experts = stream.next();
    std::sort(experts.begin(), experts.end());
    in_order += experts == Experts{0, 1, 2, 3, 4, 5, 6, 7} ? 1 : 0;
  }
  CHECK(in_order > 990);
}

TEST_CASE("destinations of one token, by hand") {
  Destinations nodes({{0, 1, 2, 3, 0, 1, 4, 5}, 4, 2}, 6, Level::node);  // experts 0 and 1 on both nodes
  CHECK(nodes.expected(Experts{2}) == doctest::Approx(1));
  CHECK(nodes.expected(Experts{2, 3}) == doctest::Approx(1));
  CHECK(nodes.expected(Experts{2, 4}) == doctest::Approx(2));
  CHECK(nodes.expected(Experts{0}) == doctest::Approx(1));
  CHECK(nodes.expected(Experts{0, 1}) == doctest::Approx(1.5));
  CHECK(nodes.expected(Experts{0, 2}) == doctest::Approx(1.5));
  CHECK(nodes.expected_others(Experts{2, 4}, 0) == doctest::Approx(1));
  CHECK(nodes.expected_others(Experts{0, 2}, 0) == doctest::Approx(0.5));
  CHECK(nodes.expected_others(Experts{0, 2}, 1) == doctest::Approx(1));
  Destinations gpus({{0, 0, 1, 1}, 2, 1}, 2, Level::gpu);
  CHECK(gpus.expected(Experts{0, 1}) == doctest::Approx(2));
  CHECK(gpus.expected(Experts{0}) == doctest::Approx(1));
}

TEST_CASE("the expectation over copies is what drawing copies comes to") {
  const Gating gating = {32, 4, 4, 2};
  Dice dice(1);
  LayerLoads loads(32);
  for (double& load : loads) load = 1 + static_cast<double>(dice.below(20));
  const Placement placement = place_experts(loads, {32, 48, 1, 4, 8});
  std::vector<std::vector<int>> slots(32);
  for (int slot = 0; slot < placement.slots(); ++slot) {
    slots[static_cast<std::size_t>(placement.expert_of_slot[static_cast<std::size_t>(slot)])].push_back(slot);
  }
  constexpr int kTokens = 40'000;
  TokenStream stream(gating, 9, loads);
  double reached = 0;
  for (int token = 0; token < kTokens; ++token) {
    std::set<int> nodes;
    for (const std::size_t e : stream.next()) nodes.insert(placement.node_of(slots[e][dice.below(slots[e].size())]));
    reached += static_cast<double>(nodes.size()) / kTokens;
  }
  const SpreadEstimate expected = expected_spreads(gating, loads, {&placement, 1}, 4, kTokens).front();
  CHECK(reached == doctest::Approx(expected.mean.nodes_per_token).epsilon(0.01));
}

TEST_CASE("the standard error is that of repeated draws") {
  const Placement placement = in_order(256, 32, 4);
  const LayerLoads loads = power_law(0.6);
  double sum = 0;
  double squares = 0;
  constexpr int kRepeats = 100;
  for (unsigned seed = 0; seed < kRepeats; ++seed) {
    const double nodes = expected_spreads(kDeepSeek, loads, {&placement, 1}, seed, 200).front().mean.nodes_per_token;
    sum += nodes;
    squares += nodes * nodes;
  }
  const double deviation = std::sqrt(squares / kRepeats - sum / kRepeats * sum / kRepeats);
  const SpreadEstimate estimate = expected_spreads(kDeepSeek, loads, {&placement, 1}, 1, 200).front();
  CHECK(deviation == doctest::Approx(estimate.standard_error.nodes_per_token).epsilon(0.25));
}

TEST_CASE("groups that stay on a node keep a token on fewer nodes than a global placement") {
  const LayerLoads loads = power_law(0.6);
  const std::vector<Placement> placements = {place_experts(loads, {256, 288, 8, 4, 32}),
                                             place_experts(loads, {256, 288, 1, 1, 32})};
  Placement global = placements[1];
  global.nodes = 4;
  const std::vector<Placement> compared = {placements[0], global};
  const auto spreads = expected_spreads(kDeepSeek, loads, compared, 1, 4096);
  CHECK(spreads[0].mean.nodes_per_token + 0.2 < spreads[1].mean.nodes_per_token);
}

TEST_CASE("a router map and the loads counted from it agree, on balance and on traffic") {
  const Gating gating = {32, 4, 4, 2};
  LayerLoads given(32);
  for (std::size_t e = 0; e < 32; ++e) given[e] = static_cast<double>(10 + e % 7);
  const RouterMap map = map_of(map_text(gating, given, 20'000), {32, 0});
  const LayerLoads counted = loads_of(map).front();
  CHECK(std::accumulate(counted.begin(), counted.end(), 0.0) == 80'000);
  for (const Placement& placement : {in_order(32, 8, 4), place_experts(counted, {32, 48, 4, 4, 8})}) {
    const double from_map = other_nodes_per_token(map, 0, placement);
    const SpreadEstimate drawn = expected_spreads(gating, counted, {&placement, 1}, 5, 20'000).front();
    CHECK(from_map == doctest::Approx(drawn.mean.nodes_per_token * 3 / 4).epsilon(0.01));
  }
}

TEST_CASE("a token's home is its rank, or its number modulo the GPUs") {
  const Placement placement = in_order(4, 2, 2);  // experts 0 and 1 on node 0
  CHECK(other_nodes_per_token(map_of("token,layer,expert0\n0,0,0\n1,0,0\n"), 0, in_order(1, 1, 1)) == 0);
  const std::string numbered = "token,layer,expert0\n0,0,0\n1,0,0\n2,0,3\n3,0,3\n";
  CHECK(other_nodes_per_token(map_of(numbered), 0, placement) == 0.5);
  const std::string ranked = "token,layer,rank,expert0\n0,0,0,0\n1,0,0,0\n2,0,1,3\n3,0,1,3\n";
  CHECK(other_nodes_per_token(map_of(ranked), 0, placement) == 0);
}

TEST_CASE("without groups a token's nodes and ranks are exact, and what drawn tokens reach") {
  const Architecture model = testing::routed_model(128, 1, 1);
  const Spread exact = expected_spread(model, 32, 8);
  const Placement placement = in_order(128, 32, 4);
  const SpreadEstimate drawn =
      expected_spreads(gating_of(model), LayerLoads(128, 1.0), {&placement, 1}, 3, 8192).front();
  CHECK(exact.ranks_per_token == doctest::Approx(7.3593700778));  // 32 x (1 - C(124, 8) / C(128, 8))
  CHECK(std::abs(exact.ranks_per_token - drawn.mean.ranks_per_token) < 4 * drawn.standard_error.ranks_per_token);
  CHECK(std::abs(exact.nodes_per_token - drawn.mean.nodes_per_token) < 4 * drawn.standard_error.nodes_per_token);
}

}  // TEST_SUITE("routing/destinations")

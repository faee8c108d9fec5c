// Placements over time, against loads that drift.
#include "routing/rebalance.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

#include "tests/support/dice.hpp"

TEST_SUITE("routing/rebalance") {

using namespace moeline;
using moeline::testing::Dice;

namespace {

constexpr PlacementShape kShape = {64, 80, 8, 2, 16};

// Loads whose logarithms walk around: each step keeps 0.9 of the last one.
std::vector<Loads> drifting(std::size_t steps, std::uint64_t seed) {
  Dice dice(seed);
  const auto noise = [&] { return static_cast<double>(dice.below(2001)) / 1000 - 1; };
  std::vector<Loads> series(steps, Loads(2, LayerLoads(64)));
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (std::size_t expert = 0; expert < 64; ++expert) {
      double state = noise();
      for (Loads& loads : series) {
        loads[layer][expert] = std::exp(state);
        state = 0.9 * state + 0.4 * noise();
      }
    }
  }
  return series;
}

double mean_of(const std::vector<BalancedStep>& steps, Imbalance BalancedStep::*which) {
  double sum = 0;
  for (const BalancedStep& step : steps) sum += (step.*which).mean;
  return sum / static_cast<double>(steps.size());
}

}  // namespace

TEST_CASE("a step is served by what was placed before it: loads that jump are not foreseen") {
  const Loads first(1, LayerLoads{8, 1, 1, 1});
  const Loads second(1, LayerLoads{1, 1, 1, 8});
  const std::vector<BalancedStep> steps = follow_loads({first, second, second}, {4, 6, 1, 1, 2}, {1, 1.0});
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].rebalanced.worst == steps[0].fixed.worst);
  CHECK(steps[0].moved_copies == 0);
  CHECK(steps[1].rebalanced.worst < steps[1].fixed.worst);
  CHECK(steps[1].moved_copies > 0);
}

TEST_CASE("loads that stay need no moves, and static and re-balanced placements serve them alike") {
  const std::vector<Loads> still(5, drifting(1, 1).front());
  for (const BalancedStep& step : follow_loads(still, kShape, {})) {
    CHECK(step.moved_copies == 0);
    CHECK(step.rebalanced.worst == doctest::Approx(step.fixed.worst));
    CHECK(step.fixed.worst < step.before.worst);
  }
}

TEST_CASE("when loads drift, re-balancing keeps the balance that a static placement loses") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<BalancedStep> steps = follow_loads(drifting(30, seed), kShape, {1, 0.5});
    CHECK(mean_of(steps, &BalancedStep::rebalanced) < mean_of(steps, &BalancedStep::fixed));
    CHECK(mean_of(steps, &BalancedStep::rebalanced) < mean_of(steps, &BalancedStep::before));
  }
}

TEST_CASE("re-balancing every fourth step moves experts in every fourth step alone") {
  const std::vector<BalancedStep> steps = follow_loads(drifting(20, 1), kShape, {4, 0.5});
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK((steps[i].moved_copies > 0) == (i > 0 && i % 4 == 0));
}

TEST_CASE("the moving average forgets: a weight of 1 places by the newest step alone") {
  const std::vector<Loads> series = drifting(3, 2);
  const std::vector<BalancedStep> steps = follow_loads(series, kShape, {1, 1.0});
  CHECK(steps[1].rebalanced.worst == doctest::Approx(gpu_imbalance(place_layers(series[1], kShape), series[2]).worst));
  Loads average = series[0];
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (std::size_t e = 0; e < 64; ++e) average[layer][e] = 0.75 * series[0][layer][e] + 0.25 * series[1][layer][e];
  }
  CHECK(follow_loads(series, kShape, {1, 0.25})[1].rebalanced.worst ==
        doctest::Approx(gpu_imbalance(place_layers(average, kShape), series[2]).worst));
}

TEST_CASE("58 layers of 256 experts are placed in 288 slots within a fraction of a second") {
  const Loads loads = expert_loads({LoadDistribution::power_law, 1, 1, {}}, 58, 256);
  const auto start = std::chrono::steady_clock::now();
  CHECK(place_layers(loads, {256, 288, 8, 4, 32}).size() == 58);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 500);  // 2 ms on a 2.6 GHz core
}

}  // TEST_SUITE("routing/rebalance")

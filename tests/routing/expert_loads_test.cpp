// Loads by distribution.
#include "routing/expert_loads.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("routing/expert_loads") {

using namespace moeline;
using moeline::testing::TemporaryFolder;

namespace {

LayerLoads sorted(LayerLoads loads) {
  std::sort(loads.rbegin(), loads.rend());
  return loads;
}

LoadSource power_law(double alpha, unsigned seed) { return {LoadDistribution::power_law, alpha, seed, {}}; }

}  // namespace

TEST_CASE("balanced loads are all 1") {
  CHECK(expert_loads({}, 3, 8) == Loads(3, LayerLoads(8, 1.0)));
  CHECK(expert_loads(power_law(0, 1), 3, 8) == Loads(3, LayerLoads(8, 1.0)));
}

TEST_CASE("a power law: the expert of rank r has r^-alpha of the first one's load, and the mean is 1") {
  for (const LayerLoads& layer : expert_loads(power_law(1.5, 1), 4, 64)) {
    const LayerLoads ranked = sorted(layer);
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      CHECK(ranked[i] / ranked[0] == doctest::Approx(std::pow(static_cast<double>(i + 1), -1.5)));
    }
    CHECK(std::accumulate(layer.begin(), layer.end(), 0.0) == doctest::Approx(64));
  }
}

TEST_CASE("ranks are drawn anew in each layer, and equal seeds draw the same") {
  const Loads loads = expert_loads(power_law(1, 7), 2, 64);
  CHECK(loads[0] != loads[1]);
  CHECK(sorted(loads[0]) == sorted(loads[1]));
  CHECK(expert_loads(power_law(1, 7), 2, 64) == loads);
  CHECK(expert_loads(power_law(1, 8), 2, 64) != loads);
}

TEST_CASE("the busiest experts of seed 1 are these with every library") {
  for (const auto& [layer, expert] : {std::pair{0, 88}, {1, 38}}) {
    const LayerLoads loads = expert_loads(power_law(1, 1), 2, 256)[static_cast<std::size_t>(layer)];
    CHECK(std::max_element(loads.begin(), loads.end()) - loads.begin() == expert);
  }
}

TEST_CASE("a file's loads are as they stand there, and must fit the model") {
  const TemporaryFolder folder;
  const auto from = [](const std::string& file, int layers, int experts) {
    return expert_loads({LoadDistribution::file, 1, 1, file}, layers, experts);
  };
  const std::string rows = folder.write("rows.csv", "1,2,3\n4, 0 ,6\n");
  CHECK(from(rows, 2, 3) == Loads{{1, 2, 3}, {4, 0, 6}});
  const std::string listed =
      folder.write("long.csv", "layer,expert,load\n9,1,0\n3,0,1\n3,1,2.5\n9,0,7\n");  // layers 3 and 9, in any order
  CHECK(from(listed, 2, 2) == Loads{{1, 2.5}, {7, 0}});
  const std::string map = folder.write("map.csv", "token,layer,expert0,expert1\n0,3,0,2\n1,3,2,1\n");
  CHECK(from(map, 1, 4) == Loads{{1, 1, 2, 0}});

  CHECK_THROWS_WITH_AS(from(rows, 3, 3), (rows + ": has 2 layers; the model has 3 MoE layers").c_str(), SpecError);
  CHECK_THROWS_WITH_AS(from(rows, 2, 4), (rows + ": has 3 experts, not 4").c_str(), SpecError);
  const std::string steps = folder.write("steps.csv", "step,layer,expert,load\n0,0,0,1\n1,0,0,1\n");
  CHECK_THROWS_WITH_AS(from(steps, 1, 1), (steps + ": has 2 steps; one is wanted here").c_str(), SpecError);
}

}  // TEST_SUITE("routing/expert_loads")

// What a user moves on a cluster, and where the predicted timelines go: EP, the network, NVLink's domain, communication
// SMs, derated links.
#include <doctest/doctest.h>

#include <algorithm>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/cluster_trends") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

double decode_us(Set set) {
  set.insert(set.begin(), {"layers=8", "kernels=open-2025-late"});
  return layer_us(run_decode(set));
}

double prefill_us(Set set) {
  set.insert(set.begin(), "layers=8");
  return layer_us(run_prefill(set));
}

double train_us(Set set) {
  set.insert(set.begin(), {"samples=1", "layers=3", "routing={distribution: balanced, rows_spread: 0.08}"});
  return layer_us(run_scenario(load_setup(chunk_scenario(), set)));
}

}  // namespace

TEST_CASE("from EP 8 to 320 a GPU reads fewer experts' weights, until that no longer counts") {
  double before = 1e9;
  std::vector<double> layers;
  for (const int ep : {8, 16, 32, 64, 128, 256}) {
    layers.push_back(decode_us({"parallelism.ep=" + std::to_string(ep)}));
    CHECK(layers.back() < before);
    before = layers.back();
  }
  layers.push_back(decode_us({"parallelism.ep=320", "routing.redundant_experts=64"}));
  CHECK(layers[0] > 1.5 * layers[3]);
  CHECK(layers[3] < 1.1 * layers.back());
}

TEST_CASE("a NIC of 200 Gb/s holds prefill up, one of 100 training, and one of 800 makes compute the limit") {
  for (const auto& [layer_us, narrow] : {std::pair{&prefill_us, "25"}, std::pair{&train_us, "12.5"}}) {
    const double slow = layer_us({std::string("hardware.nic_GBps=") + narrow}),
                 usual = layer_us({"hardware.nic_GBps=50"}), fast = layer_us({"hardware.nic_GBps=100"});
    CHECK(slow > 1.2 * usual);
    CHECK(fast < usual);
    CHECK(usual / fast < slow / usual);
  }
}

TEST_CASE("communication SMs have an optimum between 4 and 36") {
  for (double (*layer_us)(Set) : {prefill_us, train_us}) {
    std::vector<double> layers;
    for (const char* sms : {"4", "8", "12", "20", "28", "36"}) {
      layers.push_back(layer_us({std::string("comm.num_sms=") + sms}));
    }
    const auto best = std::min_element(layers.begin(), layers.end());
    CHECK(best != layers.begin());
    CHECK(best != layers.end() - 1);
    CHECK(layers.front() > 1.3 * *best);
  }
}

TEST_CASE("in an NVLink domain of 72 GPUs messages stay off the NIC") {
  const Set ep72 = {"parallelism.ep=72", "routing.redundant_experts=32", "hardware.nic_GBps=12.5"};
  Set one_domain = ep72;
  one_domain.emplace_back("hardware.gpus_per_node=72");
  CHECK(decode_us(one_domain) < 0.8 * decode_us(ep72));
}

TEST_CASE("one derated NIC and an oversubscribed leaf slow all ranks") {
  const double usual = prefill_us({});
  CHECK(prefill_us({"hardware.slowest_nic=0.5"}) > 1.3 * usual);
  CHECK(prefill_us({"hardware.leaf_nodes=1", "hardware.oversubscription=4"}) > 2 * usual);
  CHECK(prefill_us({"hardware.leaf_nodes=4", "hardware.oversubscription=4"}) == doctest::Approx(usual).epsilon(1e-3));
}

TEST_CASE("skewed routing slows prefill and training, and EPLB mends prefill's") {
  const double balanced = prefill_us({});
  const double skewed = prefill_us({"routing={distribution: power_law, alpha: 0.5}"});
  const double mended =
      prefill_us({"routing={distribution: power_law, alpha: 0.5, redundant_experts: 32, placement: eplb}"});
  CHECK(skewed > 1.2 * balanced);
  CHECK((skewed - mended) / (skewed - balanced) > 0.8);
  CHECK(train_us({"routing={distribution: power_law, alpha: 0.3}"}) > 1.1 * train_us({}));
}

}  // TEST_SUITE("schedules/cluster_trends")

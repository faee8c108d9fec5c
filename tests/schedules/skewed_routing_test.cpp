// The experts that a step's tokens reach: skewed by default in inference, and what a scenario may say about it.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/skewed_routing") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

// Sixteen requests of Qwen3-30B-A3B on one B300, as in a trace.
Setup setup_of(Set set) {
  set.insert(set.begin(), {"model=qwen3-30b-a3b", "hardware=b300", "kernels=sglang", "parallelism={ep: 1}",
                           "workload={phase: decode, batch_size: 16, kv_len: 512}"});
  return load_setup(served_scenario(), set);
}
Run run_of(const Set& set) { return run_scenario(setup_of(set)); }

std::string refused(const Set& set) {
  return refusal_of([&] { (void)setup_of(set); });
}

}  // namespace

TEST_CASE("inference is skewed by default, training is balanced") {
  CHECK(setup_of({}).scenario.routing.is_skewed());
  CHECK(experts_hit(run_of({})) < 70);
  CHECK(experts_hit(run_of({"routing={alpha: 1.2}"})) == doctest::Approx(51.5).epsilon(0.03));  // read off a trace
  CHECK(experts_hit(run_of({"routing={distribution: balanced}"})) == doctest::Approx(82.3).epsilon(0.005));
  const Setup training = load_setup(source("experiments/studies/train_sharing/mixtral.yaml"), {"routing={}"});
  CHECK(training.scenario.routing.distribution == Distribution::balanced);
}

TEST_CASE("a step reaches as many experts as its scenario says, and takes the longer the more they are") {
  double before = 0;
  for (const double hit : {12.0, 30.0, 51.5, 82.0}) {
    const Run run = run_of({"routing={experts_hit: " + std::to_string(hit) + "}"});
    CHECK(experts_hit(run) == doctest::Approx(hit).epsilon(1e-6));
    CHECK(layer_us(run) > before);
    before = layer_us(run);
  }
  const double balanced = layer_us(run_of({"routing={distribution: balanced}"}));
  CHECK(before == doctest::Approx(balanced).epsilon(0.02));
}

TEST_CASE("layers may reach different numbers of experts: each takes what it would if all were like it") {
  const auto span_us = [](const std::string& hits) {
    return to_us(run_of({"layers=4", "jitter=none", "routing={experts_hit: " + hits + "}"}).metrics.span);
  };
  const double few = span_us("20"), many = span_us("75");
  CHECK(span_us("[20, 20, 20, 20]") == doctest::Approx(few).epsilon(1e-9));
  CHECK(span_us("[20, 75, 20, 75]") == doctest::Approx((few + many) / 2).epsilon(0.005));
}

TEST_CASE("one rank stands for all of a skewed group, within 2 %") {
  for (const char* batch : {"workload.batch_size=2", "workload.batch_size=16", "workload.batch_size=256"}) {
    const Set set = {"parallelism={ep: 8}", "hardware=b200", "layers=12", "jitter=none", batch};
    const auto layer = [&](Set with) {
      with.insert(with.begin(), set.begin(), set.end());
      return layer_us(run_of(with));
    };
    double all = 0;
    constexpr int kSeeds = 4;
    for (int seed = 1; seed <= kSeeds; ++seed) all += layer({"ranks=all", "seed=" + std::to_string(seed)}) / kSeeds;
    CHECK(layer({"ranks=folded"}) == doctest::Approx(all).epsilon(0.02));
  }
}

TEST_CASE("what cannot be reached is refused by its key") {
  CHECK(says(refused({"routing={experts_hit: 7.9}"}), "experts_hit must lie from 9.615 to 82.42"));
  CHECK(says(refused({"routing={experts_hit: 83}"}), "experts_hit must lie from 9.615 to 82.42"));
  CHECK(says(refused({"routing={experts_hit: [20, 30]}"}), "experts_hit must be one number, or one per MoE layer: 48"));
  CHECK(says(refused({"routing={experts_hit: 20, alpha: 1.2}"}), "experts_hit does not go with alpha"));
  CHECK(says(refused({"routing={distribution: balanced, experts_hit: 20}"}), "experts_hit belongs to the"));
  CHECK(says(refused({"routing={distribution: balanced, alpha: 1}"}), "alpha belongs to the distribution power_law"));
}

}  // TEST_SUITE

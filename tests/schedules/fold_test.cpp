// Equal layers are simulated once, and nobody can tell.
#include <doctest/doctest.h>

#include "experiments/run/build_program.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/fold.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/fold") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

void check_same_numbers(const Run& fewer, const Run& all) {
  for (const Metric* metric : run_metrics()) {
    CAPTURE(metric->name);
    REQUIRE(metric->applies(fewer) == metric->applies(all));
    if (metric->applies(all)) CHECK(metric->value(fewer) == doctest::Approx(metric->value(all)).epsilon(1e-6));
  }
  CHECK(fewer.program.gaps_us == doctest::Approx(all.program.gaps_us));
  CHECK(fewer.program.waits_us == doctest::Approx(all.program.waits_us));
  CHECK(solo_us(fewer) == doctest::Approx(solo_us(all)));
  CHECK(extrapolated_share(fewer) == doctest::Approx(extrapolated_share(all)));
}

void check_folds(const std::filesystem::path& scenario, const Set& set) {
  const std::string changed = set.empty() ? "" : set.front();
  CAPTURE(changed);
  const Setup setup = load_setup(scenario, set);
  const Setup fewer = folded(setup);
  REQUIRE(fewer.fold.left_out > 0);
  const Run run = run_scenario(fewer);
  CHECK(run.program.graph.size() < build_program(setup).graph.size() / 3);
  check_same_numbers(run, run_scenario(setup));
}

}  // namespace

TEST_CASE("a folded step of decode has the numbers of the whole one") {
  for (const Set& set : {Set{},
                         {"schedule=sequential"},
                         {"workload.query_len=2"},
                         {"launch=stream"},
                         {"workload.batch_size=2"},
                         {"workload.kv_len_spread=2000", "ranks=folded"},
                         {"speed_spread=0.02", "ranks=folded"},
                         {"layers=40"},
                         {"model=qwen3-235b-a22b", "parallelism={ep: 32, dp: 32}"}}) {
    check_folds(decode_scenario(), set);
  }
}

TEST_CASE("windows that alternate repeat every second layer") {
  const Set oss = {"model=gpt-oss-120b", "parallelism={ep: 32, dp: 32}"};
  CHECK(folded(load_setup(decode_scenario(), oss)).fold.period == 2);
  check_folds(decode_scenario(), oss);
}

TEST_CASE("indexers that layers share repeat every fourth layer") {
  const std::filesystem::path scenario = home() / "experiments/studies/sparse_or_full_attention/scenario.yaml";
  for (const char* keys : {"workload.kv_len=4096", "workload.kv_len=131072"}) {
    CHECK(folded(load_setup(scenario, {"model=glm-5.2", keys})).fold.period == 4);
    check_folds(scenario, {"model=glm-5.2", keys});
  }
}

TEST_CASE("a folded step of prefill has the numbers of the whole one") {
  for (const Set& set : {Set{},
                         {"schedule=sequential"},
                         {"workload.tokens=1024"},
                         {"launch=graph"},
                         {"comm.num_sms=8"},
                         {"workload.prompt_len=40000"}}) {
    check_folds(prefill_scenario(), set);
  }
}

TEST_CASE("a host that gets behind layer by layer is not folded away, though the first layers take equally long") {
  for (const char* ranks : {"parallelism.ep=16", "parallelism.ep=64"}) {
    const Setup setup = load_setup(prefill_scenario(), {"workload.tokens=512", ranks});
    check_same_numbers(run_scenario(folded(setup)), run_scenario(unfolded(setup)));
  }
}

TEST_CASE("layers with loads of their own, ranks that are all simulated, and few layers are not folded") {
  for (const Set& set : {Set{"routing={distribution: power_law}"}, {"ranks=all"}, {"layers=8"}}) {
    CHECK(folded(load_setup(decode_scenario(), set)).fold.left_out == 0);
  }
  CHECK(folded(load_setup(chunk_scenario(), {})).fold.left_out == 0);
}

TEST_CASE("more MoE layers than the model has are its own around again") {
  for (const char* model : {"model=deepseek-v3", "model=gpt-oss-120b"}) {
    CAPTURE(model);
    const auto one_layer_us = [&](const char* layers) {
      return layer_us(run_decode({model, layers, "parallelism.ep=32", "parallelism.dp=32"}));
    };
    CHECK(one_layer_us("layers=80") == doctest::Approx(one_layer_us("layers=30")).epsilon(0.001));
  }
}

}  // TEST_SUITE("schedules/fold")

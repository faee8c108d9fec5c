// Steps that only decode run by the graph that holds the busiest group's requests.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/run/run_metrics.hpp"
#include "experiments/serve/serve.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("serve/graph_steps") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kHead =
    "schema: 1\nmodel: deepseek-v3\nhardware: h200\nkernels: sglang\nschedule: sequential\nlayers: 4\n";
const std::string kGroup = kHead +
                           "parallelism: {tp: 8}\nworkload: {phase: serve, concurrency: 9, requests: 90, input_len: "
                           "64, output_len: 256}\n";
const std::string kGroups = kHead +
                            "parallelism: {ep: 8}\nworkload: {phase: serve, concurrency: 40, requests: 200, "
                            "input_len: 64, output_len: 128, output_len_spread: 40}\n";

ServeResult served(const std::string& scenario, const std::vector<std::string>& set = {}) {
  return serve(Spec::parse("serve.yaml", scenario), set);
}

}  // namespace

TEST_CASE("nine requests at a time run as twelve, a quarter of whose rows are of none") {
  const ServeResult padded = served(kGroup), exact = served(kGroup, {"workload.graph_batch=exact"});
  int full = 0;
  for (const ServedStep& step : padded.log.steps) {
    if (step.busiest.prompts > 0) {
      CHECK(step.graph_batch == 0);
    } else if (step.busiest.answers == 9) {
      CHECK(step.graph_batch == 12);
      ++full;
    }
  }
  CHECK(full > 100);
  CHECK(padded.measures.padding_share == doctest::Approx(0.25).epsilon(0.05));
  CHECK(exact.measures.padding_share == 0);
  CHECK(padded.measures.steady.tpot_ms.p50 > exact.measures.steady.tpot_ms.p50);
  const Setup step = read_setup(
      Spec::parse("s.yaml", kHead + "parallelism: {tp: 8}\nworkload: {phase: decode, batch_size: 9, kv_len: 192}\n"));
  const double step_ms = to_us(run_scenario(step).metrics.span) / 1e3;
  CHECK(padded.measures.steady.tpot_ms.p50 == doctest::Approx(step_ms).epsilon(0.02));
}

TEST_CASE(
    "a host that does not overlap lengthens each step by what it does, one that does only where steps are shorter") {
  const auto tpot = [](const std::vector<std::string>& set) { return served(kGroup, set).measures.steady.tpot_ms.p50; };
  const double usual = tpot({}), apart = tpot({"workload.overlap_scheduler=false", "workload.host.step_us=0"});
  const double host = tpot({"workload.overlap_scheduler=false", "workload.host={step_us: 1000, request_us: 8}"});
  CHECK(host == doctest::Approx(apart + 1 + 9 * 0.008).epsilon(0.01));
  CHECK(tpot({"workload.overlap_scheduler=false"}) == doctest::Approx(host));
  CHECK(tpot({"workload.host.step_us=100"}) == doctest::Approx(usual));
  CHECK(tpot({"workload.host.step_us=5000"}) == doctest::Approx(5).epsilon(0.01));
}

TEST_CASE("the busiest group's requests decide for all groups") {
  const ServeResult r = served(kGroups);
  int differ = 0;
  for (const ServedStep& step : r.log.steps) {
    if (step.graph_batch == 0) continue;
    CHECK(step.graph_batch >= step.busiest.answers);
    differ += step.busiest.answers > step.mean.answers ? 1 : 0;
  }
  CHECK(differ > 10);
  CHECK(r.measures.padding_share > 0);
  CHECK(r.measures.padding_share < 1);
  CHECK(r.answers.steps_error < 0.05);
}

TEST_CASE("a number is the batch of all steps, and must hold all that a group may have") {
  const ServeResult r = served(kGroup, {"workload.batch_size=16", "workload.graph_batch=16"});
  for (const ServedStep& step : r.log.steps) CHECK(step.graph_batch == (step.busiest.prompts > 0 ? 0 : 16));
  const TemporaryFolder folder;
  const std::string file = folder.write("serve.yaml", kGroup);
  for (const char* batch : {"workload.batch_size=32", "seed=1"}) {
    check_refused({"simulate", file, "--set", batch, "--set", "workload.graph_batch=16"},
                  "--set: workload.graph_batch ", "16: needs a batch_size that it holds");
  }
}

TEST_CASE("the share of padding is told in the table and in JSON") {
  const TemporaryFolder folder;
  const std::string file = folder.write("serve.yaml", kGroup);
  CHECK(says(run_moeline({"simulate", file}).out, "padding of CUDA graphs"));
  CHECK(says(run_moeline({"simulate", file, "--format", "json"}).out, "\"padding_share\": 0.2"));
}

}  // TEST_SUITE("serve/graph_steps")

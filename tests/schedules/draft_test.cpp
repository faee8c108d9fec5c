// What drafting tokens costs and brings.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/draft") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Run served(const std::vector<std::string>& more) {
  std::vector<std::string> changes = {"model=qwen3-235b-a22b", "parallelism={tp: 8}", "routing.distribution=exact"};
  changes.insert(changes.end(), more.begin(), more.end());
  return run_scenario(load_setup(served_scenario(), changes));
}

DecodeWorkload drafting(std::vector<double> acceptance) {
  return {.batch_size = 1, .kv_len = 64, .query_len = 4, .mtp_acceptance = std::move(acceptance)};
}

}  // namespace

TEST_CASE("a request gets the tokens that are accepted one after the other, each by its own chance") {
  CHECK(tokens_per_request(drafting({0.5})) == doctest::Approx(1 + 0.5 + 0.25 + 0.125));
  CHECK(tokens_per_request(drafting({0.9, 0.5, 0.2})) == doctest::Approx(1 + 0.9 + 0.45 + 0.09));
  CHECK(tokens_per_request(drafting({0.9, 0, 1})) == doctest::Approx(1.9));
}

TEST_CASE(
    "a model without MTP drafts for nothing until it is given a draft, each layer of which costs time and memory") {
  const Run free = served({"workload.query_len=3"});
  const Run one = served({"workload.query_len=3", "workload.draft_layers=1"});
  const Run four = served({"workload.query_len=3", "workload.draft_layers=4"});
  CHECK(free.metrics.span < one.metrics.span);
  CHECK(one.metrics.span < four.metrics.span);
  CHECK(memory_bytes(free) < memory_bytes(one));
  CHECK(memory_bytes(one) < memory_bytes(four));
  CHECK(four.metrics.span < 2 * free.metrics.span);  // twice four layers of 94, and two heads
}

TEST_CASE("a draft takes the place of MTP modules") {
  const auto decode = [](const char* more) {
    return load_setup(served_scenario(), {"model=deepseek-v3", "parallelism={tp: 8}", "workload.query_len=2", more});
  };
  CHECK(decode("seed=1").model.mtp_layer.routed);
  CHECK_FALSE(decode("workload.draft_layers=1").model.mtp_layer.routed);
  CHECK(decode("workload.draft_layers=1").model.mtp_layer.dense_width == 18432);
}

}  // TEST_SUITE("schedules/draft")

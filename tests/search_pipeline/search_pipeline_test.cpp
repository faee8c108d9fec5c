// Which layers stand on which stage: the best of all, floors that nothing goes below, and only what fits memory.
#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "experiments/run/run_metrics.hpp"
#include "experiments/search_pipeline/least_step.hpp"
#include "experiments/search_pipeline/search_pipeline.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("search_pipeline/search_pipeline") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kScenario =
    "schema: 1\nmodel: deepseek-v3\nhardware: h800\nkernels: deepseek-2025-02\nschedule: 1f1b\n"
    "parallelism: {pp: 4, ep: 64, dp: 64}\nlayers: 10\n"
    "workload: {phase: train, global_batch_size: 512, micro_batch_size: 1, seq_len: 4096}\n"
    "routing: {distribution: balanced}\n";

class PipelineFile {
 public:
  [[nodiscard]] PipelineRequest request(std::vector<std::string> set) const {
    PipelineRequest request;
    request.scenario = file();
    request.assignments = std::move(set);
    request.workers = 2;
    return request;
  }
  [[nodiscard]] std::string file() const { return folder_.write("scenario.yaml", kScenario); }
  [[nodiscard]] double step_ms(std::vector<std::string> set) const {
    set.insert(set.end(), {"level=phase", "speed_spread=0"});
    return to_us(run_scenario(load_setup(file(), set)).metrics.span) / 1e3;
  }

 private:
  TemporaryFolder folder_;
};

PipelineAnswer found(const PipelineRequest& request) {
  return search_pipeline(request, [](const char*, std::size_t, std::size_t) {});
}

std::string stages(const Partition& partition) {
  std::string text;
  for (const int layers : partition) text += (text.empty() ? "stages=[" : ",") + std::to_string(layers);
  return text + "]";
}

}  // namespace

TEST_CASE("partitions: as many as the formula says, all different, every layer on a stage") {
  for (const auto& [layers, count] : {std::pair{7, 3}, {9, 4}, {5, 5}, {6, 1}, {3, 4}}) {
    const std::vector<Partition> all = all_partitions(layers, count);
    CHECK(static_cast<double>(all.size()) == partition_count(layers, count));
    CHECK(std::set<Partition>(all.begin(), all.end()).size() == all.size());
    for (const Partition& partition : all) {
      CHECK(partition.size() == static_cast<std::size_t>(count));
      CHECK(std::accumulate(partition.begin(), partition.end(), 0) == layers);
      CHECK(*std::min_element(partition.begin(), partition.end()) >= 1);
    }
  }
  CHECK(neighbours_of({2, 1, 1}) == std::vector<Partition>{{1, 2, 1}, {1, 1, 2}});
}

TEST_CASE("few partitions are all looked at: none is faster than the best, nor below what it takes at least") {
  const PipelineFile scenario;
  for (const char* schedule : {"schedule=1f1b", "schedule=zb1p", "schedule=zb-h2", "schedule=dualpipe"}) {
    CAPTURE(schedule);
    if (kSanitized && schedule != std::string("schedule=1f1b")) continue;
    const PipelineAnswer answer = found(scenario.request({schedule}));
    REQUIRE(answer.schedules.size() == 1);
    const ScheduleAnswer& of_schedule = answer.schedules.front();
    CHECK(of_schedule.exhaustive);
    CHECK(of_schedule.plans == 1 + 84);
    CHECK(answer.floor_ms <= answer.best.ms);
    const LeastStep least(load_setup(scenario.file(), {schedule}));
    double best_ms = answer.published.ms;
    for (const Partition& partition : all_partitions(10, 4)) {
      const double ms = scenario.step_ms({schedule, stages(partition)});
      best_ms = std::min(best_ms, ms);
      CHECK(least.ms() <= least.ms(partition));
      CHECK(least.ms(partition) < ms);
    }
    CHECK(answer.best.ms == doctest::Approx(best_ms).epsilon(1e-5));
  }
}

TEST_CASE("of many partitions layers move until none helps, from wherever the scenario's stages are") {
  const PipelineFile scenario;
  const auto with = [](const std::string& stages) {
    return std::vector<std::string>{"schedule=1f1b", "layers=40", "parallelism.pp=8", stages};
  };
  PipelineRequest request = scenario.request(with("stages=[1,1,1,1,1,1,1,33]"));
  const PipelineAnswer answer = found(request);
  CHECK(answer.schedules.front().plans > 1e6);
  CHECK_FALSE(answer.schedules.front().exhaustive);
  CHECK(answer.best.ms < 0.5 * answer.published.ms);
  CHECK(answer.best.ms <= scenario.step_ms(with("stages=[5,5,5,5,5,5,5,5]")));
  CHECK(answer.best.ms == doctest::Approx(scenario.step_ms(with(answer.best.changes.back()))));
  request.workers = 1;
  CHECK(found(request).best.changes == answer.best.changes);
}

TEST_CASE("a move from the scenario's own stages is found, where these are better than equal ones") {
  const PipelineFile scenario;
  const std::vector<std::string> own = {"layers=40", "parallelism.pp=8", "stages=[6,5,5,5,5,5,5,4]"};
  const std::vector<std::string> moved = {"layers=40", "parallelism.pp=8", "stages=[6,6,5,5,5,5,4,4]"};
  REQUIRE(scenario.step_ms(moved) < scenario.step_ms(own));
  CHECK(found(scenario.request(own)).best.ms <= scenario.step_ms(moved));
}

TEST_CASE("of sequences of unequal length none of few partitions is left out that is faster") {
  const PipelineFile scenario;
  const std::string lengths = "workload.seq_len=[8192,1024,1024,1024,1024,1024,1024,1024]";
  const PipelineAnswer answer = found(scenario.request({lengths}));
  for (const char* stages : {"stages=[1,3,3,3]", "stages=[2,2,3,3]", "stages=[3,3,3,1]"}) {
    CHECK(answer.best.ms <= scenario.step_ms({lengths, stages}) * (1 + 1e-9));
  }
  CHECK(answer.floor_ms <= answer.best.ms);
}

TEST_CASE("every pipeline is tried, what is none of this layout is told, and only what fits memory counts") {
  const PipelineFile scenario;
  PipelineRequest request = scenario.request({});
  request.schedules = true;
  request.stages = false;
  const PipelineAnswer all = found(request);
  CHECK(all.schedules.size() >= 9);
  CHECK(all.refused.size() >= 1);  // interleaved-1f1b needs virtual_pp
  for (const ScheduleAnswer& each : all.schedules) {
    if (each.best) CHECK(each.floor_ms < each.best->ms);
    if (each.best && each.best->fits) CHECK(all.best.ms <= each.best->ms);
  }
  CHECK(all.best.ms < all.published.ms);
  double least_gib = all.published.memory_gib;
  for (const ScheduleAnswer& each : all.schedules) {
    if (each.best) least_gib = std::min(least_gib, each.best->memory_gib);
  }
  request.assignments = {"hardware.memory_gib=" + std::to_string(least_gib + 0.1)};
  const PipelineAnswer little = found(request);
  CHECK(little.best.fits);
  CHECK(little.best.memory_gib < least_gib + 0.1);
  CHECK(little.best.ms > all.best.ms);
}

TEST_CASE("a search of pipelines is refused for what it does not search, by name") {
  const PipelineFile scenario;
  const std::string file = scenario.file();
  check_wrong_usage({"search", file, "--over", "orders"}, "--over orders: of a whole pipeline are searched: schedules");
  const std::string costs = "slot_costs_ms={F: 1, B: 2}";
  check_refused({"search", file, "--set", costs}, file, "slot_costs_ms: slots of given length");
  check_wrong_usage({"search", file, "-o", "plan.yaml"}, "of a pipeline the answer is --set");
  check_wrong_usage({"search", chunk_scenario(), "--over", "stages"},
                    "--over stages: of a plan of overlapped phases are searched: orders");
  check_refused({"search", file, "--set", "parallelism.pp=12"}, file, "stages cannot be balanced: 10 layers");
}

}  // TEST_SUITE("search_pipeline/search_pipeline")

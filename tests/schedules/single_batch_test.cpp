// One micro-batch that overlaps with itself: shared experts beside a transfer, the combine beside the GEMM before it.
#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "experiments/run/run_metrics.hpp"
#include "schedules/lowering/block_release.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/single_batch") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Run run_single(const std::vector<std::string>& more = {}) {
  std::vector<std::string> changes = {"schedule=single-batch",  "parallelism.ep=16",
                                      "workload.batch_size=32", "layers=6",
                                      "hardware=h20",           "kernels=open-2025-late"};
  changes.insert(changes.end(), more.begin(), more.end());
  return run_decode(changes);
}

std::vector<TaskId> tasks(const Run& run, const std::string& kernel) { return tasks_of(run, kernel, 3); }

}  // namespace

TEST_CASE("a part of the combine is sent once its rows are there, while the GEMM computes the next ones") {
  const Run run = run_single();
  const std::vector<Span>& spans = run.timeline.spans;
  const std::vector<TaskId> down = tasks(run, "expert down"), issue = tasks(run, "combine issue"),
                            wire = tasks(run, "combine on the wire");
  REQUIRE(down.size() == 12);  // 16 experts, 56 tiles wide, on 75 SMs: twelve waves
  REQUIRE(issue.size() == 24);
  REQUIRE(wire.size() == 24);
  for (std::size_t i = 0; i < issue.size(); ++i) {
    CHECK(spans[issue[i]].start >= spans[down[i / 2]].end);
    CHECK(spans[wire[i]].start >= spans[issue[i]].end);
  }
  CHECK(spans[issue.front()].start < spans[down[1]].end);
  for (std::size_t i = 1; i < down.size(); ++i) CHECK(spans[down[i]].start == spans[down[i - 1]].end);
}

TEST_CASE("parts of a kernel take what it takes as a whole, on as many SMs") {
  const Run run = run_single({"comm.num_sms=5", "speed_spread=0", "routing.distribution=exact"});
  for (const char* kernel : {"expert down", "combine issue", "combine on the wire"}) {
    CAPTURE(kernel);
    const std::vector<TaskId> parts = tasks(run, kernel);
    const KernelWork& work = run.program.kernels[run.program.executions[parts.front()].kernel];
    const Price whole = price(work.op, work.conditions, run.setup.machine.facts, run.setup.kernels());
    CHECK(solo_us(run, parts) == doctest::Approx(whole.solo_us).epsilon(1e-6));
    double share = 0;
    for (const TaskId part : parts) {
      share += run.program.executions[part].share;
      CHECK(run.program.graph.task(part).sms == whole.sms);
    }
    CHECK(share == doctest::Approx(1));
  }
  CHECK(run.program.graph.task(tasks(run, "combine issue").front()).sms == 5);
  CHECK(run.program.graph.task(tasks(run, "expert down").front()).sms == 78 - 5);
  CHECK(run.program.graph.task(tasks(run, "expert gate_up").front()).sms == 78);
}

TEST_CASE("start-up comes with the first part, latency with the last, and parts add up to the whole") {
  const std::vector<Time> first = parts_of(100, 19, 10, Once::first), last = parts_of(100, 19, 10, Once::last);
  CHECK(first.front() == from_us(19));
  CHECK(last.back() == from_us(19));
  for (const std::vector<Time>& parts : {first, last, parts_of(1, 0, 7, Once::last), parts_of(0, 3, 4, Once::first)}) {
    const Time sum = std::accumulate(parts.begin(), parts.end(), Time::zero());
    CHECK((sum == from_us(100) || sum == from_us(1) || sum == Time::zero()));
    for (const Time part : parts) CHECK(part >= Time::zero());
  }
  CHECK(parts_of(7, 7, 1, Once::first) == std::vector<Time>{from_us(7)});
}

TEST_CASE("what a GEMM releases: at most once for each expert, and not before a wave has ended") {
  CHECK(releases_of(16, 7168, 75) == 12);
  CHECK(releases_of(4, 7168, 129) == 2);
  CHECK(releases_of(1, 7168, 3) == 1);
  CHECK(releases_of(256, 7168, 75) == 16);
  for (const int releases : {1, 2, 3, 5, 12, 16}) {
    CHECK(sends_of(releases) % releases == 0);
    CHECK(sends_of(releases) >= 16);
  }
}

TEST_CASE("on paper: shared experts hide the dispatch as long as they last, and nothing else changes") {
  const std::vector<std::string> alone = {"comm.num_sms=0", "routing.distribution=exact", "jitter=none",
                                          "speed_spread=0"};
  for (const char* batch : {"workload.batch_size=16", "workload.batch_size=64", "workload.batch_size=128"}) {
    CAPTURE(batch);
    std::vector<std::string> single = alone, sequential = alone;
    single.emplace_back(batch);
    sequential.insert(sequential.end(), {batch, "schedule=sequential"});
    const Run beside = run_single(single), before = run_single(sequential);
    const double wire = solo_us(before, tasks(before, "dispatch on the wire"));
    const double shared = to_us(phase(before, "shared", 0, 3).end - phase(before, "shared", 0, 3).start);
    CHECK(layer_us(before) - layer_us(beside) == doctest::Approx(std::min(wire, shared)).epsilon(0.05));
  }
}

TEST_CASE("on paper: the combine hides behind the down GEMM but for what the last rows take") {
  const std::vector<std::string> equal = {"routing.distribution=exact", "jitter=none", "speed_spread=0"};
  std::vector<std::string> without = equal;
  without.emplace_back("comm.num_sms=0");
  const Run beside = run_single(equal), behind = run_single(without);
  const double down = solo_us(behind, tasks(behind, "expert down"));
  const double sent =
      solo_us(behind, tasks(behind, "combine issue")) + solo_us(behind, tasks(behind, "combine on the wire"));
  const double gain = layer_us(behind) - layer_us(beside);
  CHECK(gain > 0.5 * std::min(down, sent));
  CHECK(gain < std::min(down, sent));
}

TEST_CASE("with the combine beside it, a kernel does the same FLOPs, and counts once") {
  CHECK(flops_of(run_single()) == doctest::Approx(flops_of(run_single({"schedule=sequential"}))).epsilon(1e-6));
}

TEST_CASE("on Blackwell shared experts run beside the combine, on the SMs that it leaves, and 32 are its") {
  const Run run = run_single({"hardware=b200", "kernels=sglang", "parallelism.ep=32"});
  CHECK(run.setup.scenario.comm.num_sms == 32);
  CHECK(phase(run, "shared", 0, 3).start >= phase(run, "mlp", 0, 3).end);
  CHECK(phase(run, "shared", 0, 3).start < phase(run, "combine", 0, 3).end);
  const std::vector<TaskId> gate_up = tasks(run, "gate_up");
  const auto shared = std::find_if(gate_up.begin(), gate_up.end(), [&](TaskId id) {
    return run.program.graph.phases()[run.program.graph.label(id).phase].name == "shared";
  });
  REQUIRE(shared != gate_up.end());
  CHECK(run.program.graph.task(*shared).sms <= 148 - 32);
}

TEST_CASE("two micro-batches may release their combines, too, and by default do not") {
  const auto issues = [](const std::vector<std::string>& changes) {
    return tasks(run_decode(changes), "combine issue").size();
  };
  CHECK(issues({"layers=6"}) == 2);
  CHECK(issues({"layers=6", "comm.num_sms=4"}) > 2);
}

TEST_CASE("what runs beside a combine leaves it its SMs: in the turn behind, and of later pieces") {
  const auto sms_of = [](const Run& run, const std::string& kernel) {
    std::set<int> found;
    for (const TaskId id : tasks(run, kernel)) found.insert(run.program.graph.task(id).sms);
    return found;
  };
  const Run pieces = run_single({"schedule=per-expert", "comm.num_sms=6"});
  CHECK(sms_of(pieces, "expert gate_up") == std::set<int>{72});
  const Run two = run_single({"schedule=decode-two-batch", "comm.num_sms=6"});
  CHECK(sms_of(two, "expert gate_up") == std::set<int>{78});
  CHECK(sms_of(two, "W_O").contains(72));  // in attn-1 of the other micro-batch
  CHECK_FALSE(sms_of(pieces, "W_O").contains(72));
}

TEST_CASE("one rank that stands for all waits for the slowest as all ranks do, with the combine beside or behind") {
  for (const char* schedule : {"schedule=single-batch", "schedule=per-expert"}) {
    for (const char* sms : {"comm.num_sms=0", "comm.num_sms=8"}) {
      CAPTURE(schedule);
      CAPTURE(sms);
      const auto layer = [&](const char* ranks) {
        return layer_us(run_decode({schedule, sms, ranks, "workload.batch_size=64", "layers=16"}));
      };
      CHECK(layer("ranks=folded") == doctest::Approx(layer("ranks=all")).epsilon(0.02));
    }
  }
}

TEST_CASE("ranks with unequal numbers of experts release equally often") {
  const Run run = run_single({"ranks=all", "routing.distribution=power_law", "routing.alpha=1",
                              "routing.placement=eplb", "routing.redundant_experts=16"});
  CHECK(run.program.ranks == 16);
}

}  // TEST_SUITE("schedules/single_batch")

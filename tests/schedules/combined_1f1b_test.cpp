// Megatron's combined 1F1B: a forward pass of one micro-batch beside a backward pass of another, on the same stage.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/combined_1f1b") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

// Eight layers of Qwen3-30B in BF16 on H100, over NCCL's all-to-all between two nodes.
Run run_of(Set more, const std::string& overlap) {
  const std::string text =
      "schema: 1\nmodel: qwen3-30b-a3b\nhardware: h100\nschedule: 1f1b\nparallelism: {pp: 1, ep: 16, dp: 16}\n"
      "workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 128}\nlayers: 8\n"
      "routing: {distribution: exact}\ncomm: {mode: all_to_all}\n";
  more.push_back("overlap=" + overlap);
  return run_scenario(read_setup(Spec::parse("scenario.yaml", text), more));
}

const std::vector<Set> kLayouts = {{},
                                   {"parallelism={pp: 4, ep: 16, dp: 16}", "workload.global_batch_size=256"},
                                   {"schedule=interleaved-1f1b", "parallelism={pp: 4, virtual_pp: 2, ep: 16, dp: 16}",
                                    "workload.global_batch_size=256"}};

// Of all ranks, less the passes that run alone.
Time end_of(const Run& run, const std::string& phase, int micro_batch, int layer) {
  const TaskGraph& graph = run.program.graph;
  Time end{};
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Phase& p = graph.phases()[graph.label(task).phase];
    const bool same = p.name == phase && static_cast<int>(p.micro_batch) == micro_batch;
    if (same && static_cast<int>(p.layer) == layer) end = std::max(end, run.timeline.spans[task].end);
  }
  return end;
}

Time start_of_transfer(const Run& run, const std::string& phase, int micro_batch, int layer) {
  const TaskGraph& graph = run.program.graph;
  Time start = run.timeline.makespan;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Phase& p = graph.phases()[graph.label(task).phase];
    const bool same = p.name == phase && static_cast<int>(p.micro_batch) == micro_batch;
    const bool transfer = graph.task_class(task).role == Role::communication;
    if (same && transfer && static_cast<int>(p.layer) == layer) start = std::min(start, run.timeline.spans[task].start);
  }
  return start;
}

}  // namespace

TEST_CASE("combined passes do the same work in less time, with less communication exposed, and keep more") {
  for (const Set& layout : kLayouts) {
    for (const char* launch : {"launch=stream", "launch=graph"}) {
      Set set = layout;
      set.emplace_back(launch);
      set.emplace_back("hardware.host_speed=10");  // a step that waits for its host has nothing to hide
      CAPTURE(launch);
      const Run plain = run_of(set, "none"), combined = run_of(set, "combined");
      CHECK(combined.program.model_flops == doctest::Approx(plain.program.model_flops));
      CHECK(combined.metrics.exposed_comm < 0.7 * plain.metrics.exposed_comm);
      CHECK(combined.metrics.span < plain.metrics.span);
      CHECK(combined.step()->fullest().memory.peak.activations > plain.step()->fullest().memory.peak.activations);
    }
  }
}

TEST_CASE("overlap: none and no word are 1F1B as it was") {
  CHECK(run_of({}, "none").metrics.span == run_of({}, "default").metrics.span);
}

TEST_CASE("with one micro-batch there is no pair, and combined is plain") {
  const Set one = {"workload.global_batch_size=16"};
  CHECK(step_ms(run_of(one, "combined")) == doctest::Approx(step_ms(run_of(one, "none"))));
}

TEST_CASE("nothing in a combined step is hidden that takes longer than what may hide it") {
  const Run combined = run_of({"launch=graph"}, "combined");
  const Metrics& m = combined.metrics;
  CHECK(m.span >= m.compute_busy);
  CHECK(m.exposed_comm + m.compute_busy <= m.span + Time{1});
}

// Of NICs that are no bottleneck.
TEST_CASE("gradients of weights precede the transfer behind them, unless they are delayed") {
  const std::string fast = "hardware.nic_GBps=200";
  const Run at_once = run_of({fast}, "combined");
  const Run delayed = run_of({fast, "training.delay_weight_gradients=true"}, "combined");
  CHECK(delayed.metrics.span <= at_once.metrics.span);
  const int layer = 4, micro_batch = 2;
  CHECK(start_of_transfer(at_once, "dispatch(B)", micro_batch, layer) >= end_of(at_once, "mlp(W)", micro_batch, layer));
  CHECK(start_of_transfer(delayed, "dispatch(B)", micro_batch, layer) < end_of(delayed, "mlp(W)", micro_batch, layer));
}

// Of few layers slots overlap much at their ends: of all 48 it is 0.1 %.
TEST_CASE("by slots a combined step of eight layers takes as long as by operators, within 6 %") {
  for (Set set : kLayouts) {
    set.emplace_back("launch=graph");
    const Run operators = run_of(set, "combined");
    set.emplace_back("level=phase");
    CHECK(step_ms(run_of(set, "combined")) == doctest::Approx(step_ms(operators)).epsilon(0.06));
  }
}

}  // TEST_SUITE("schedules/combined_1f1b")

// The overlapped chunk of DeepSeek-V3's training: mechanisms of contention come out of the engine, and what-ifs move
// as they must. No measured data needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "experiments/run/kernel_times.hpp"
#include "experiments/run/run.hpp"
#include "experiments/run/run_metrics.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("schedules/dualpipe_chunk") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// One rank alone.
Run run(std::vector<std::string> assignments = {}, bool record = false) {
  assignments.insert(assignments.begin(), {"ranks=folded", "samples=1"});
  return run_scenario(load_setup(chunk_scenario(), assignments), {.record_changes = record});
}

double step_us(std::vector<std::string> assignments) { return to_us(run(std::move(assignments)).metrics.span); }

const PhaseTimes& phase(const Run& run, const std::string& name, std::uint32_t layer) {
  return *std::find_if(run.phases.begin(), run.phases.end(),
                       [&](const PhaseTimes& p) { return p.phase == name && p.layer == layer; });
}

}  // namespace

TEST_CASE("the FP8 cast of dY, squeezed onto the SMs that the W_O weight gradient leaves, is 6.6 times slower") {
  const Run chunk = run();  // in layer 0 nothing runs beside it
  const auto casts = select(chunk, {.name = "cast dY to fp8", .phase = "combine(B)", .layers = {1, 2, 3}});
  REQUIRE(casts.size() == 3);
  for (const TaskId cast : casts) CHECK(median_slowdown(chunk, {cast}) == doctest::Approx(6.6).epsilon(0.10));
}

TEST_CASE("memory-bound kernels under a transfer are 1.17 times slower, FP8 GEMMs at most 1.07") {
  const Run chunk = run();
  for (const char* transfer : {"dispatch", "combine"}) {
    const std::vector<TaskId> memory = select(chunk, {.task_class = "memory", .beside = transfer});
    REQUIRE(memory.size() > 50);
    CHECK(median_slowdown(chunk, memory) == doctest::Approx(1.17).epsilon(0.05 / 1.17));
    for (const char* gemm : {"gemm", "grouped_gemm"}) {
      for (const TaskId id : select(chunk, {.task_class = gemm, .beside = transfer})) {
        const bool elastic = chunk.program.graph.task(id).hold == Hold::elastic;  // the router's BF16 GEMMs
        if (!elastic) CHECK(median_slowdown(chunk, {id}) <= 1.07);
      }
    }
  }
}

TEST_CASE("the expert GEMMs on two streams run one after the other") {
  const Run chunk = run();
  std::vector<Span> spans;
  for (const TaskId id : select(chunk, {.name = "expert down wgrad", .layers = {0}})) {
    spans.push_back(chunk.timeline.spans[id]);
  }
  REQUIRE(spans.size() == 4);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].start >= spans[i - 1].end);
}

TEST_CASE("weight gradients that a plan puts beside a side stream alternate with it, in every phase that has them") {
  const auto plan = std::filesystem::temp_directory_path() / "moeline_side_plan.yaml";
  std::ofstream(plan) << "compute: [attn(F), mlp(B), mlp(W), mlp(F), attn(B), attn(W)]\n"
                         "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\n"
                         "side: [mlp(W), attn(W)]\n";
  const Run chunk = run({"overlap=" + plan.string()});
  std::filesystem::remove(plan);
  int on_side = 0;
  for (TaskId id = 0; id < chunk.program.graph.size(); ++id) {
    on_side += chunk.program.graph.streams()[chunk.program.graph.label(id).stream].id == 23 ? 1 : 0;
  }
  CHECK(on_side == 4 * (2 + 2 + 2));  // of four down, four gate_up and five attention gradients in each layer
}

TEST_CASE("rows that do not go with the number of tokens are warned about") {
  CHECK(run().warnings.size() == 1);  // the measured rows: a little is extrapolated
  const Run doubled = run({"workload.seq_len=8192"});
  CHECK(std::any_of(doubled.warnings.begin(), doubled.warnings.end(), [](const std::string& warning) {
    return warning.find("routing.rows are 0.49 of what this many tokens give") != std::string::npos;
  }));
}

TEST_CASE("dispatch and combine follow their phases within 50 us where the measured chunk's do") {
  const Run chunk = run();
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    const auto slack = [&](const char* before, std::uint32_t before_layer, const char* after) {
      return to_us(phase(chunk, after, layer).start - phase(chunk, before, before_layer).end);
    };
    CHECK(slack("attn(F)", layer, "dispatch(F)") >= 0);
    CHECK(slack("attn(F)", layer, "dispatch(F)") <= 50);
    CHECK(slack("mlp(F)", layer, "combine(F)") >= 0);
    if (layer < 3) CHECK(slack("mlp(F)", layer, "combine(F)") <= 50);
    if (layer == 0) continue;
    CHECK(slack("attn(B)", layer - 1, "combine(B)") >= 0);
    CHECK(slack("attn(B)", layer - 1, "combine(B)") <= 50);
  }
}

TEST_CASE(
    "with free communication the chunk takes the time of its kernels one after the other, and their launch gaps") {
  Setup setup = load_setup(chunk_scenario(), {"ranks=folded", "samples=1",
                                              "hardware.nic_GBps=12.5"});  // communication-bound when it is not free
  const Run bound = run_scenario(setup);
  setup.free_communication = true;
  const Run free = run_scenario(setup);
  double kernels_us = 0;
  for (TaskId id = 0; id < free.program.graph.size(); ++id) {
    const std::uint32_t stream = free.program.graph.streams()[free.program.graph.label(id).stream].id;
    if (stream != 7 && stream != 23) continue;
    kernels_us += to_us(free.program.graph.task(id).solo) + setup.kernels()[Constant::kernel_gap];
  }
  CHECK(to_us(free.metrics.comm_busy) == 0);
  CHECK(to_us(free.metrics.span) == doctest::Approx(kernels_us).epsilon(0.005));
  CHECK(to_us(bound.metrics.span) > 2 * kernels_us);
}

TEST_CASE("a quarter of the NIC exposes communication") {
  const Run normal = run();
  const Run slow = run({"hardware.nic_GBps=12.5"});
  CHECK(to_us(normal.metrics.exposed_comm) < 0.02 * to_us(normal.metrics.span));
  CHECK(to_us(slow.metrics.exposed_comm) > 0.3 * to_us(slow.metrics.span));
  CHECK(slow.metrics.span > 1.8 * normal.metrics.span);
}

TEST_CASE("the number of communication SMs has an optimum inside its range") {
  const std::vector<int> sms = {1, 2, 4, 8, 12, 20, 32, 48, 64, 96};
  std::vector<double> steps;
  for (const int count : sms) steps.push_back(step_us({"comm.num_sms=" + std::to_string(count)}));
  const auto best = std::min_element(steps.begin(), steps.end());
  CHECK(best != steps.begin());
  CHECK(best != steps.end() - 1);
  CHECK(steps.front() > 1.5 * *best);
  CHECK(steps.back() > 1.5 * *best);
}

TEST_CASE("layer_us of equal layers is their period, which more layers do not change") {
  const char* kBalanced = "routing={distribution: balanced}";
  for (const char* schedule : {"schedule=dualpipe-chunk", "schedule=sequential"}) {
    const auto one_layer_us = [&](const char* layers) {
      return layer_us(run({kBalanced, "speed_spread=0", "jitter=none", schedule, layers}));
    };
    CHECK(one_layer_us("layers=4") == doctest::Approx(one_layer_us("layers=9")).epsilon(1e-4));
    const double longer = step_us({kBalanced, "speed_spread=0", "jitter=none", schedule, "layers=9"});
    const double shorter = step_us({kBalanced, "speed_spread=0", "jitter=none", schedule, "layers=8"});
    CHECK(one_layer_us("layers=9") == doctest::Approx(longer - shorter).epsilon(1e-4));
  }
}

TEST_CASE("MFU counts 65.2 TFLOP: what was executed less the recomputed projections and attention scores") {
  // 66.89 TFLOP without W_UQ and W_UKV (derived from the trace's grids); S once more in attention's backward: 4 x 0.412
  const Run chunk = run();
  CHECK(chunk.program.model_flops / 1e12 == doctest::Approx(66.89 - 4 * 0.412).epsilon(0.002));
  CHECK(mfu(chunk) == doctest::Approx(chunk.program.model_flops / (to_us(chunk.metrics.span) * 1e-6 * 989.5e12)));
}

TEST_CASE("overlap beats the sequential schedule, whose phases in turn are faster") {
  const Run overlapped = run();
  const Run serial = run({"schedule=sequential"});
  CHECK(overlapped.metrics.span < serial.metrics.span);
  CHECK(serial.metrics.overlap_fraction() == 0);
  CHECK(serial.metrics.compute_busy < overlapped.metrics.compute_busy);
  CHECK(to_us(serial.metrics.span) >= to_us(serial.metrics.compute_busy + serial.metrics.comm_busy));
}

TEST_CASE("a layer with a tenth more rows takes longer, by no more than a tenth") {
  const auto rows = [](int m) {
    const std::string r = std::to_string(m);
    return "routing={distribution: given, rows: {forward: [" + r + "], backward: [" + r + "]}}";
  };
  const double base = step_us({"layers=1", rows(32768)});
  const double more = step_us({"layers=1", rows(36096)});
  CHECK(more > base);
  CHECK(more < 1.1 * base);
}

TEST_CASE("exactly balanced routing gives every rank ideal rows, chance half a tile more for each expert") {
  // 4096 tokens x 8 experts: 32768 rows on each of 64 ranks, whole tiles without padding
  const auto load = [](const char* distribution) {
    const std::string routing = std::string("routing={distribution: ") + distribution + "}";
    return load_setup(chunk_scenario(), {"ranks=folded", "samples=1", routing}).layer_work(true, 0).load;
  };
  CHECK(load("exact").rows == 32768);
  CHECK(load("exact").received == doctest::Approx(30670).epsilon(0.003));
  CHECK(load("balanced").valid == load("exact").valid);
  CHECK(load("balanced").rows == doctest::Approx(32768 + 4 * 64).epsilon(1e-4));
}

TEST_CASE("at most a tenth of the time comes from kernels of a fixed cost") {
  CHECK(lumped_share(run()) > 0);
  CHECK(lumped_share(run()) < 0.1);
}

TEST_CASE("the same scenario gives the same timeline, to the picosecond") {
  const Run a = run();
  const Run b = run();
  REQUIRE(a.timeline.spans.size() == b.timeline.spans.size());
  for (std::size_t i = 0; i < a.timeline.spans.size(); ++i) {
    CHECK(a.timeline.spans[i].start == b.timeline.spans[i].start);
    CHECK(a.timeline.spans[i].end == b.timeline.spans[i].end);
  }
}

}  // TEST_SUITE("schedules/dualpipe_chunk")

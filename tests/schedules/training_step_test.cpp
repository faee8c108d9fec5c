// Whole steps of training with operators: what slots, bubbles, messages and the optimizer must come to.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "architecture/parameters.hpp"
#include "engine/simulate.hpp"
#include "experiments/run/run_metrics.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/pipeline/stages.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/data.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/training_step") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// No time between ranks, so that what is left is the schedule. The all-to-all is bound by its SMs then.
std::vector<std::string> without_sends() {
  return {"hardware.nic_latency_us=0.001", "hardware.nic_GBps=100000", "training={overlap_gradients: false}"};
}

// 0 of what the schedule does not have.
double median_slot_ms(const Run& run, SlotKind kind) {
  std::vector<double> lengths;
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    if (run.step()->layout.slots[i].slot.kind == kind) lengths.push_back(ms(run.phases[i].end - run.phases[i].start));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths.empty() ? 0 : lengths[lengths.size() / 2];
}

// Of one layer, at the end of B.
double last_attention_weights_ms(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  Time first = Time::max();
  Time last{};
  const auto& phases = graph.phases();
  for (std::uint32_t id = 0; id < phases.size(); ++id) {
    if (phases[id].name != "attn(W)") continue;
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (graph.label(task).phase != id || graph.task_class(task).role == Role::host) continue;
      first = std::min(first, run.timeline.spans[task].start);
      last = std::max(last, run.timeline.spans[task].end);
    }
    break;
  }
  return ms(last - first);
}

std::vector<Time> starts_of(const Run& run, const std::string& phase, std::uint32_t rank) {
  std::vector<Time> starts;
  const TaskGraph& graph = run.program.graph;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Phase& of_task = graph.phases()[graph.label(task).phase];
    if (of_task.name == phase && of_task.rank == rank) starts.push_back(run.timeline.spans[task].start);
  }
  return starts;
}

}  // namespace

TEST_CASE("a rank's slots, bubble and optimizer add up to the step, whatever the schedule") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const Run run = run_small(schedule);
    for (const RankStep& rank : run.step()->ranks) {
      const StepParts& p = rank.parts;
      CHECK(p.forward + p.backward + p.weight + p.overlapped + p.bubble + p.optimizer == run.timeline.makespan);
      CHECK(p.bubble >= Time::zero());
    }
  }
}

TEST_CASE("every slot of the schedule has a row, in the schedule's order and without overtaking") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const Run run = run_small(schedule);
    const std::vector<RankSlots> expected = pipeline_slots(run.setup.scenario);
    std::size_t row = 0;
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      Time before{};
      for (const Slot& slot : expected[rank]) {
        const PhaseTimes& now = run.phases[row++];
        CHECK(now.rank == rank);
        CHECK(now.phase == name_of(slot.kind));
        CHECK(now.start >= before);
        before = now.start;
      }
    }
    CHECK(row == run.phases.size());
  }
}

TEST_CASE("an overlapped pair takes as long as the published chunk of as many layers, within 2 %") {
  const Run pipeline = run_small("dualpipe");
  const Run chunk = run_scenario(
      load_setup(chunk_scenario(), {"samples=1", "ranks=folded", "jitter=none", "speed_spread=0", "layers=2",
                                    "routing={distribution: balanced}", "parallelism={ep: 64, dp: 64}"}));
  CHECK(median_ms(pipeline, "F&B") == doctest::Approx(step_ms(chunk)).epsilon(0.02));
}

TEST_CASE("bubbles of equal stages are those of the closed forms, for the slots' own lengths, within 1 %") {
  for (const auto& [pp, layers, batch] : {std::tuple{4, 8, 768}, std::tuple{8, 16, 1536}, std::tuple{4, 8, 1536}}) {
    MOELINE_CAPTURE_BINDING(pp);
    MOELINE_CAPTURE_BINDING(batch);
    std::vector<std::string> more = without_sends();
    more.push_back("layers=" + std::to_string(layers));
    more.push_back("parallelism.pp=" + std::to_string(pp));
    more.push_back("workload.global_batch_size=" + std::to_string(batch));
    for (const std::string schedule : {"gpipe", "1f1b"}) {
      CAPTURE(schedule);
      const Run run = run_small(schedule, more);
      // B gives its result before the gradients of its last layer's attention: the form counts all of it
      const double late = (pp - 1) * (median_ms(run, "F") + median_ms(run, "B"));
      CHECK(bubble_ms(run) <= late * 1.01);
      CHECK(bubble_ms(run) >= late - (pp - 1) * last_attention_weights_ms(run) - 0.01 * late);
    }
    const Run zb1p = run_small("zb1p", more);
    const double f = median_ms(zb1p, "F");
    const double b_input = median_ms(zb1p, "B");
    const double w = median_ms(zb1p, "W");
    REQUIRE(w <= f);  // where the form holds: F + B - 2W with B = b_input + W
    REQUIRE(w <= b_input);
    CHECK(bubble_ms(zb1p) == doctest::Approx((pp - 1) * (f + b_input - w)).epsilon(0.01));
  }
}

// A slot of given length gives its result at its end and starts at the end of the one before.
TEST_CASE("without sends the operators' schedule is that of slots of their lengths, within 1.5 %, 3 % with overlap") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    std::vector<std::string> more = without_sends();
    more.push_back(in_a_v(schedule) ? "layers=16" : "layers=8");
    const Run run = run_small(schedule, more);
    SlotCosts costs;
    costs.f = median_slot_ms(run, SlotKind::forward);
    costs.w = median_slot_ms(run, SlotKind::weight);
    costs.b =
        std::max(median_slot_ms(run, SlotKind::backward), median_slot_ms(run, SlotKind::backward_input) + costs.w);
    costs.f_and_b = median_slot_ms(run, SlotKind::forward_backward);
    Setup slots = run.setup;
    slots.scenario.slot_costs = costs;
    const double without_optimizer = step_ms(run) - ms(run.step()->mean.optimizer);
    CHECK(step_ms(run_scenario(slots)) ==
          doctest::Approx(without_optimizer).epsilon(schedule.starts_with("dualpipe") ? 0.03 : 0.015));
  }
}

TEST_CASE("DualPipe hides what 1F1B and ZB1P expose, and idles less") {
  const Run dualpipe = run_small("dualpipe", {"workload.global_batch_size=2048"});
  for (const std::string schedule : {"gpipe", "1f1b", "zb1p"}) {
    CAPTURE(schedule);
    const Run other = run_small(schedule, {"workload.global_batch_size=2048"});
    CHECK(dualpipe.metrics.exposed_comm < 0.5 * other.metrics.exposed_comm);
    CHECK(dualpipe.metrics.span < other.metrics.span);
  }
}

TEST_CASE("without overlap a pair takes its two passes one after the other, and exposes their transfers") {
  const Run overlapped = run_small("dualpipe", {"workload.global_batch_size=2048"});
  const Run serial = run_small("dualpipe", {"workload.global_batch_size=2048", "overlap=none"});
  const Run alone = run_small("1f1b");
  CHECK(median_ms(serial, "F&B") == doctest::Approx(median_ms(alone, "F") + median_ms(alone, "B")).epsilon(0.02));
  CHECK(median_ms(serial, "F&B") > 1.2 * median_ms(overlapped, "F&B"));
  CHECK(serial.metrics.exposed_comm > 2 * overlapped.metrics.exposed_comm);
}

TEST_CASE("at phase level a step is as long as with its operators, within 1.5 %") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const std::string layers = in_a_v(schedule) ? "layers=16" : "layers=8";  // two on each stage
    const Run operators = run_small(schedule, {layers});
    const Run phases = run_small(schedule, {layers, "level=phase"});
    CHECK(step_ms(phases) == doctest::Approx(step_ms(operators)).epsilon(0.015));
    CHECK(phases.phases.size() == operators.phases.size());
    CHECK(phases.program.model_flops == doctest::Approx(operators.program.model_flops));
    CHECK(solo_us(phases) == doctest::Approx(solo_us(operators)).epsilon(0.001));
    CHECK(phases.program.graph.size() < operators.program.graph.size() / 20);
  }
}

TEST_CASE("work grows with micro-batches and ranks as they do") {
  const auto tasks = [](const char* batch, const char* pp, const char* layers) {
    return static_cast<double>(
        run_small("dualpipe", {std::string("workload.global_batch_size=") + batch, std::string("parallelism.pp=") + pp,
                               std::string("layers=") + layers})
            .program.graph.size());
  };
  CHECK(tasks("1536", "4", "8") == doctest::Approx(2 * tasks("768", "4", "8")).epsilon(0.01));
  CHECK(tasks("1536", "8", "16") == doctest::Approx(2 * tasks("1536", "4", "8")).epsilon(0.01));
}

TEST_CASE("the kernels of a whole step make the FLOPs that its tokens need, within 2 %") {
  // Padded expert rows are more, half a diagonal of keys is less. MTP has FLOPs of its own, which MFU does not count.
  const Run run = run_step({"level=phase", "training.mtp=false"});
  const double tokens = 15360.0 * 4096 / 128;  // of the ranks of one pipeline
  const double flops = run.program.model_flops * run.program.ranks;
  CHECK(flops / tokens == doctest::Approx(flops_per_token(run, true)).epsilon(0.02));
}

TEST_CASE("DeepSeek-V3 counts 250 GFLOP per token with causal attention and 280 without, as its authors do") {
  const Run run = run_step({"level=phase"});
  CHECK(flops_per_token(run, true) / 1e9 == doctest::Approx(250).epsilon(0.005));
  // 432 against 385 TFLOPS at equal speed (arXiv 2505.09343, table 4)
  CHECK(flops_per_token(run, false) / flops_per_token(run, true) == doctest::Approx(432.0 / 385).epsilon(0.002));
  CHECK(gpu_hours_per_trillion_tokens(run) ==
        doctest::Approx(2048 * step_ms(run) / 3.6e6 / (15360 * 4096.0) * 1e12).epsilon(1e-6));
}

TEST_CASE("DeepSeek-V3 on 16 stages: four layers each, the head and MTP for three of the last stage's") {
  const Run run = run_step({"level=phase"});
  const auto& stages = run.step()->layout.stages;
  REQUIRE(stages.size() == 16);
  CHECK(describe(stages.front()) == "embedding, 3 dense, 1 moe");
  for (std::size_t stage = 1; stage < 15; ++stage) CHECK(describe(stages[stage]) == "4 moe");
  CHECK(describe(stages.back()) == "1 moe, head, mtp, 1 moe, head");
}

TEST_CASE("a message is there when it has been sent and received, and its pass starts after it") {
  const Run run = run_small("1f1b", {"layers=4"});
  const std::vector<Time> forward = starts_of(run, "send(F)", 0);
  const std::vector<Time> received = starts_of(run, "receive(F)", 1);
  REQUIRE(forward.size() == 12);
  REQUIRE(received.size() == 12);
  std::size_t micro_batch = 0;
  const double send_ms = 4096.0 * 7168 * 2 / 50e9 * 1e3;
  for (const PhaseTimes& row : run.phases) {
    if (row.rank != 1 || row.phase != "F") continue;
    CHECK(ms(row.start - forward[micro_batch]) >= send_ms);
    ++micro_batch;
  }
}

TEST_CASE("a rank that waits for its sends starts its next slot after them") {
  const double waits = step_ms(run_small("1f1b"));
  const double goes_on = step_ms(run_small("1f1b", {"training={overlap_sends: true}"}));
  CHECK(goes_on < waits);
}

TEST_CASE("gradients that are reduced once they are complete make step and slots hardly longer: links are shared") {
  for (const std::string& schedule : kSchedules) {
    CAPTURE(schedule);
    const Run early = run_small(schedule);
    const Run late = run_small(schedule, {"training={overlap_gradients: false}"});
    CHECK(step_ms(early) <= 1.001 * step_ms(late));
    const auto slots_ms = [](const Run& run) {
      const StepParts& p = run.step()->mean;
      return ms(p.forward + p.backward + p.weight + p.overlapped);
    };
    CHECK(slots_ms(early) <= 1.01 * slots_ms(late));
  }
  CHECK(step_ms(run_small("dualpipe")) < step_ms(run_small("dualpipe", {"training={overlap_gradients: false}"})));
}

TEST_CASE("the wait for the last rank's gradients is a bubble, not communication") {
  const Run run = run_small("1f1b");
  const auto of = [&](const char* phase, std::uint32_t rank) {
    const TaskGraph& graph = run.program.graph;
    Time sum{};
    for (TaskId task = 0; task < graph.size(); ++task) {
      const Phase& of_task = graph.phases()[graph.label(task).phase];
      if (of_task.name != phase || of_task.rank != rank || graph.task_class(task).role == Role::host) continue;
      sum += run.timeline.spans[task].end - run.timeline.spans[task].start;
    }
    return ms(sum);
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) CHECK(of("gradient norm", rank) < 0.01);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    CHECK(starts_of(run, "gradient norm", rank) == starts_of(run, "gradient norm", 0));
  }
}

TEST_CASE("where all ranks share a node, sends and gradients stay in it") {
  const Run run =
      run_small("dualpipe", {"parallelism={pp: 2, ep: 4, dp: 4}", "workload.global_batch_size=32", "layers=4"});
  const TaskGraph& graph = run.program.graph;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).name != "collective") continue;
    for (const Usage& usage : graph.usages(task)) {
      CHECK(graph.resources()[usage.link].name.find("NIC") == std::string::npos);
    }
  }
}

TEST_CASE("narrow uplinks slow sends and the rings of experts, whose replicas are nodes apart") {
  const auto longest_ms = [](const Run& run, const char* phase) {
    Time longest{};
    const TaskGraph& graph = run.program.graph;
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (graph.phases()[graph.label(task).phase].name == phase) longest = std::max(longest, graph.task(task).solo);
    }
    return ms(longest);
  };
  const std::vector<std::string> wide = {"parallelism={pp: 4, ep: 8, dp: 16}", "workload.global_batch_size=192"};
  std::vector<std::string> narrow = wide;
  narrow.insert(narrow.end(), {"hardware.leaf_nodes=1", "hardware.leaf_latency_us=3.7", "hardware.oversubscription=4"});
  const Run at_full = run_small("1f1b", wide);
  const Run oversubscribed = run_small("1f1b", narrow);
  // The NIC at full is a little slower than its rate, the uplinks are not.
  for (const char* phase : {"send(F)", "reduce-scatter"}) {
    const double slower = longest_ms(oversubscribed, phase) / longest_ms(at_full, phase);
    CHECK_MESSAGE(slower > 3, phase);
    CHECK_MESSAGE(slower < 4, phase);
  }
}

TEST_CASE("with free communication nothing is exposed and transfers take no time") {
  Setup setup = load_setup(step_scenario(), small_step("dualpipe"));
  setup.free_communication = true;
  const Run free = run_scenario(setup);
  CHECK(free.metrics.comm_busy < 0.01 * free.metrics.span);
  CHECK(free.metrics.span < run_small("dualpipe").metrics.span);
}

TEST_CASE("equal scenarios give equal steps") {
  const Run one = run_small("dualpipev");
  const Run two = run_small("dualpipev");
  REQUIRE(one.timeline.spans.size() == two.timeline.spans.size());
  CHECK(std::equal(one.timeline.spans.begin(), one.timeline.spans.end(), two.timeline.spans.begin(),
                   [](const Span& a, const Span& b) { return a.start == b.start && a.end == b.end; }));
}

TEST_CASE("balanced stages: no split has a cheaper costliest stage, and none of those smaller squares") {
  std::vector<StageBlocks> units;
  const std::vector<double> costs = {5, 3, 3, 4, 1, 2, 6, 2, 4};
  for (int i = 0; i < 9; ++i) units.push_back({{BlockKind::moe_layer, i}});
  const auto cost_of = [&](const StageBlocks& stage) {
    double sum = 0;
    for (const Block& block : stage) sum += costs[static_cast<std::size_t>(block.layer)];
    return sum;
  };
  const auto worst_and_squares = [&](const std::vector<StageBlocks>& stages) {
    std::pair<double, double> both{0, 0};
    for (const StageBlocks& stage : stages) {
      both.first = std::max(both.first, cost_of(stage));
      both.second += cost_of(stage) * cost_of(stage);
    }
    return both;
  };
  const auto found = worst_and_squares(balanced_stages(units, costs, 3));
  for (std::size_t a = 1; a < 8; ++a) {  // every split into three of at most three units
    for (std::size_t b = a + 1; b < 9; ++b) {
      if (a > 3 || b - a > 3 || 9 - b > 3) continue;
      const auto at = [&](std::size_t i) { return units.begin() + static_cast<std::ptrdiff_t>(i); };
      std::vector<StageBlocks> split(3);
      for (auto unit = units.begin(); unit != units.end(); ++unit) {
        StageBlocks& stage = unit < at(a) ? split[0] : unit < at(b) ? split[1] : split[2];
        stage.push_back(unit->front());
      }
      CHECK(worst_and_squares(split) >= found);
    }
  }
}

TEST_CASE("every rank of a pipeline has a slowest GPU of its own, as slow as is expected, and the seed says where") {
  const auto slowness = [](const char* seed) {
    return load_setup(step_scenario(), {"speed_spread=0.03", seed}).variation.slowness;
  };
  std::vector<double> one = slowness("seed=1"), other = slowness("seed=2");
  REQUIRE(one.size() == 16);
  CHECK(one != other);
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  CHECK(one == other);
  CHECK(std::adjacent_find(one.begin(), one.end()) == one.end());
  const double mean = std::accumulate(one.begin(), one.end(), 0.0) / 16;
  CHECK(mean == doctest::Approx(slowest_of(64, 0.03)).epsilon(0.002));
}

TEST_CASE("stages that differ in speed lengthen a step by more than their mean") {
  const std::vector<std::string> set = {"level=phase", "jitter=none"};
  const auto step = [&](const std::string& spread) {
    std::vector<std::string> with_spread = set;
    with_spread.push_back("speed_spread=" + spread);
    return load_setup(step_scenario(), with_spread);
  };
  Setup differ = step("0.1");
  Setup alike = differ;
  std::fill(alike.variation.slowness.begin(), alike.variation.slowness.end(), slowest_of(64, 0.1));
  CHECK(run_scenario(differ).metrics.span > run_scenario(alike).metrics.span);
  CHECK(run_scenario(alike).metrics.span > run_scenario(step("0")).metrics.span);
}

}  // TEST_SUITE("schedules/training_step")

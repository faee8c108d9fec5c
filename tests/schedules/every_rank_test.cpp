// All ranks of an expert-parallel group: they meet at barriers and receives, and differ by what the scenario says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/parallel.hpp"
#include "engine/simulate.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/samples.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("schedules/every_rank") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

const char* const kOneDraw = "samples=1";
const char* const kAlike = "routing={distribution: exact}";

Set with(Set set, std::initializer_list<const char*> more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

Run run_chunk(Set more = {}) {
  more.insert(more.begin(), kOneDraw);
  return run_scenario(load_setup(chunk_scenario(), more));
}

// Start and end of every barrier, by its place in the program; of all ranks.
std::map<std::tuple<std::uint32_t, std::string>, std::vector<Span>> barriers(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  std::map<std::tuple<std::uint32_t, std::string>, std::vector<Span>> found;
  for (TaskId id = 0; id < graph.size(); ++id) {
    if (graph.classes()[graph.label(id).task_class].name != "barrier") continue;
    const Phase& phase = graph.phases()[graph.label(id).phase];
    found[{phase.layer, phase.name}].push_back(run.timeline.spans[id]);
  }
  return found;
}

double waits_us(const Run& run) {
  double sum = 0;
  for (const PhaseTimes& phase : run.phases) sum += to_us(phase.barrier);
  return sum;
}

int kernels(const Run& run) {
  int count = 0;
  for (TaskId id = 0; id < run.program.graph.size(); ++id) {
    count += run.program.graph.task_class(id).role == Role::host ? 0 : 1;
  }
  return count;
}

}  // namespace

TEST_CASE("no rank leaves a barrier before the last one has come") {
  const auto all = barriers(run_chunk());
  REQUIRE(all.size() == 16);
  for (const auto& [where, spans] : all) {
    REQUIRE(spans.size() == 64);
    Time last_start{};
    for (const Span& span : spans) last_start = std::max(last_start, span.start);
    for (const Span& span : spans) CHECK(span.end >= last_start);
  }
}

TEST_CASE("ranks that are all alike take the time of one") {
  for (const auto& scenario : {chunk_scenario(), prefill_scenario(), decode_scenario()}) {
    CAPTURE(scenario.string());
    const Set alike = {kOneDraw, kAlike, "layers=3", "jitter=none", "speed_spread=0", "kernels=deepseek-2025-02"};
    const Run one = run_scenario(load_setup(scenario, with(alike, {"ranks=folded"})));
    const Run all = run_scenario(load_setup(scenario, with(alike, {"ranks=all"})));
    CHECK(all.program.ranks == all.setup.scenario.parallelism.ep);
    CHECK(kernels(all) == kernels(one) * all.program.ranks);
    CHECK(all.metrics.span == one.metrics.span);
    CHECK(all.metrics.exposed_comm == one.metrics.exposed_comm);
    CHECK(mfu(all) == doctest::Approx(mfu(one)));
  }
}

TEST_CASE("equal seeds give the same timeline on all ranks, others another one") {
  const Run run = run_chunk(), again = run_chunk(), other = run_chunk({"seed=2"});
  REQUIRE(run.timeline.spans.size() == again.timeline.spans.size());
  bool same = true;
  for (std::size_t i = 0; i < run.timeline.spans.size(); ++i) {
    same = same && run.timeline.spans[i].end == again.timeline.spans[i].end;
  }
  CHECK(same);
  CHECK(run.metrics.span != other.metrics.span);
}

TEST_CASE("the more the ranks differ, the longer their barriers") {
  double before = 0;
  for (const char* spread :
       {"routing.rows_spread=0", "routing.rows_spread=0.04", "routing.rows_spread=0.08", "routing.rows_spread=0.16"}) {
    const double waits = waits_us(run_chunk({"ranks=all", "speed_spread=0", spread}));
    CHECK(waits > 1.2 * before);
    before = waits;
  }
}

TEST_CASE("rows that some ranks lack are others'") {
  const Setup setup = load_setup(chunk_scenario(), {kOneDraw, kAlike, "routing.rows_spread=0.1"});
  for (const int layer : {0, 3}) {
    double valid = 0;
    for (int rank = 0; rank < 64; ++rank) valid += setup.layer_work(true, layer, rank).load.valid;
    CHECK(valid == doctest::Approx(64 * 4096 * 8));
  }
}

TEST_CASE("a folded run expects the barriers that all ranks have, within 15 %") {
  for (const char* speed : {"speed_spread=0", "speed_spread=0.015"}) {
    const Set set = {"routing={distribution: balanced, rows_spread: 0.08}", speed};
    const Run folded = run_scenario(load_setup(chunk_scenario(), with(set, {"ranks=folded", kOneDraw})));
    const Samples all = sample(load_setup(chunk_scenario(), with(set, {"samples=21"})));
    const auto median = std::find_if(all.metrics.begin(), all.metrics.end(),
                                     [](const MetricBand& metric) { return metric.name == "barrier_us"; });
    CHECK(barrier_us(folded) == doctest::Approx(median->band.median).epsilon(0.15));
  }
}

TEST_CASE("without what varies nobody waits, folded or not") {
  for (const char* ranks : {"ranks=all", "ranks=folded"}) {
    const Run run = run_chunk({kAlike, "speed_spread=0", "jitter=none", ranks});
    CHECK(waits_us(run) < 16 * 20);  // two latencies each
  }
}

TEST_CASE("one rank that stands for all expects what chance makes of their experts' rows, within 2 %") {
  const Set decode = {"layers=8", "jitter=none", "kernels=deepseek-2025-02"};
  const double exact = layer_us(run_decode(with(decode, {kAlike})));
  const double folded = layer_us(run_decode(with(decode, {"ranks=folded"})));
  const double all = layer_us(run_decode(with(decode, {"ranks=all"})));
  CHECK(all > 1.03 * exact);
  CHECK(folded == doctest::Approx(all).epsilon(0.02));
}

TEST_CASE("so it does where an expert's rows fill its tiles exactly, whose last rows cost as much again by chance") {
  for (const char* batch : {"workload.batch_size=120", "workload.batch_size=128", "workload.batch_size=136"}) {
    CAPTURE(batch);
    const Set set = {"hardware=h20", "kernels=sglang-0.5.14", "parallelism.ep=16", "schedule=sequential", "layers=8",
                     batch};
    const double folded = layer_us(run_decode(with(set, {"ranks=folded"})));
    CHECK(folded == doctest::Approx(layer_us(run_decode(with(set, {"ranks=all"})))).epsilon(0.02));
  }
}

TEST_CASE(
    "experts in a format that no table has are priced by their tiles, whether or not chance scatters their rows") {
  const auto layer = [](const char* distribution) {
    const Setup setup = load_setup(served_scenario(), {"hardware=h200", "kernels=sglang", "precision.experts=nvfp4",
                                                       "parallelism={tp: 8, ep: 8}", distribution});
    return layer_us(run_scenario(setup));
  };
  CHECK(layer("routing.distribution=balanced") == doctest::Approx(layer("routing.distribution=exact")).epsilon(0.15));
}

TEST_CASE("one slow GPU makes all others wait for it in decode") {
  const Set decode = {"layers=8", "parallelism.ep=32"};
  const Run equal = run_decode(with(decode, {"ranks=all", "speed_spread=0", "jitter=none"}));
  const Run unequal = run_decode(with(decode, {"ranks=all", "speed_spread=0.03", "jitter=none"}));
  const std::vector<double>& slowness = unequal.setup.variation.slowness;
  const double slowest = *std::max_element(slowness.begin(), slowness.end());
  const double ratio =
      static_cast<double>(unequal.metrics.span.count()) / static_cast<double>(equal.metrics.span.count());
  CHECK(ratio > 1 + 0.4 * (slowest - 1));
  CHECK(ratio < slowest);  // memory and links have clocks of their own
}

TEST_CASE("one rank that stands for all goes at the pace of the slowest GPU of its group, within 1 %") {
  for (const auto& run : {run_decode, run_prefill}) {
    const Set set = {"layers=12", "jitter=none", "routing.distribution=exact", "kernels=deepseek-2025-02"};
    const double alike = layer_us(run(with(set, {"speed_spread=0"})));
    const double folded = layer_us(run(set));
    const double all = layer_us(run(with(set, {"ranks=all"})));
    CHECK(all > 1.01 * alike);
    CHECK(folded == doctest::Approx(all).epsilon(0.01));
  }
}

TEST_CASE("requests that differ in length or number make the ranks with less wait") {
  const Set decode = {"layers=8", "parallelism.ep=32", "jitter=none"};
  const Run equal = run_decode(with(decode, {"ranks=all"}));
  for (const char* unequal : {"workload.kv_len_spread=3000", "workload.batch_size_spread=16"}) {
    const Run run = run_decode(with(decode, {unequal}));
    CHECK(run.program.ranks == 32);
    CHECK(run.metrics.span > equal.metrics.span);
  }
}

TEST_CASE("a power law costs decode most of its speed, and EPLB brings most of it back") {
  const auto one_layer_us = [](const std::string& routing) {
    return layer_us(run_decode({"layers=8", "parallelism.ep=144", "routing=" + routing}));
  };
  const double balanced = one_layer_us("{distribution: balanced, redundant_experts: 32}");
  const double without = one_layer_us("{distribution: power_law, alpha: 1}");
  const double dealt = one_layer_us("{distribution: power_law, alpha: 1, redundant_experts: 32}");
  const double eplb = one_layer_us("{distribution: power_law, alpha: 1, redundant_experts: 32, placement: eplb}");
  CHECK(without > 5 * balanced);
  CHECK(dealt > 5 * balanced);  // copies of any experts are of no use
  CHECK(eplb < 2 * balanced);
  CHECK((without - eplb) / (without - balanced) > 0.9);
  CHECK(one_layer_us("{distribution: power_law, alpha: 0.5}") < 0.6 * without);
}

TEST_CASE("a power law of alpha 0 is exactly balanced, but for copies that cannot be shared out evenly") {
  const Set decode = {"layers=8", "parallelism.ep=128"};
  const Run balanced = run_decode(with(decode, {kAlike, "ranks=all", "jitter=none"}));
  const Run flat = run_decode(with(decode, {"routing={distribution: power_law, alpha: 0}", "jitter=none"}));
  CHECK(imbalance(flat) == doctest::Approx(1));
  CHECK(layer_us(flat) == doctest::Approx(layer_us(balanced)).epsilon(1e-3));
}

TEST_CASE("bands hold nine tenths of the samples, whatever the number of cores") {
  const Setup setup = load_setup(decode_scenario(), {"layers=4", "parallelism.ep=8", "samples=20"});
  const Samples samples = sample(setup), again = sample(setup);
  REQUIRE(samples.count == 20);
  for (std::size_t i = 0; i < samples.metrics.size(); ++i) {
    const Band& band = samples.metrics[i].band;
    CHECK(band.p5 <= band.median);
    CHECK(band.median <= band.p95);
    CHECK(band.median == again.metrics[i].band.median);
  }
  const Band linear = band_of({4, 1, 3, 2, 5});
  CHECK(linear.median == 3);
  CHECK(linear.p5 == doctest::Approx(1.2));
  CHECK(linear.p95 == doctest::Approx(4.8));
}

TEST_CASE("threads that ask at once how a group's speeds lie all get the same") {
  constexpr int kFirst = 300;  // ranks that nobody has asked about yet
  constexpr std::size_t kTogether = 8, kGroups = 40;
  std::vector<std::vector<double>> got(kTogether * kGroups);
  parallel_for(got.size(), 4,
               [&](std::size_t i) { got[i] = expected_slowness(kFirst + static_cast<int>(i / kTogether), 0.03, 1); });
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == got[i / kTogether * kTogether]);
}

}  // TEST_SUITE("schedules/every_rank")

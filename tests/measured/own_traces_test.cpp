// Our own traces read back: what was simulated is what analyze says, or analyze says that it cannot tell.
#include <doctest/doctest.h>

#include <algorithm>

#include "experiments/run/run.hpp"
#include "tests/support/json.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/step.hpp"
#include "timeline/metrics.hpp"
#include "timeline/write_trace.hpp"

TEST_SUITE("measured/own_traces") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const Run& prefill() {
  static const Run run =
      run_scenario(load_setup(source("experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml"), {"layers=6"}),
                   {.record_changes = true});
  return run;
}

std::string trace(bool phases_only) {
  return trace_of_rank(prefill().program.graph, prefill().timeline, 0,
                       {.world_size = 32, .device_name = "h800", .phases_only = phases_only});
}

// Times pass through a trace in ns.
void check_alike(Time read, Time simulated) { CHECK(to_us(read) == doctest::Approx(to_us(simulated)).epsilon(1e-4)); }

bool has_class(const RankAnalysis& rank, KernelClass wanted) {
  return std::any_of(rank.classes.begin(), rank.classes.end(),
                     [&](const ClassUse& use) { return use.kernel_class == wanted; });
}

}  // namespace

TEST_CASE("a trace of kernels reads back as it was simulated: compute, communication, and what of it is exposed") {
  const Metrics metrics = measure(prefill().program.graph, prefill().timeline);
  const RankAnalysis rank = analyze(understand(read(trace(false)))).ranks.at(0);
  check_alike(rank.times.compute, metrics.compute_busy);
  check_alike(rank.times.communication, metrics.comm_busy);
  check_alike(rank.times.exposed, metrics.exposed_comm);
  for (const ClassUse& use : rank.classes) {
    CAPTURE(name_of(use.kernel_class));
    const auto simulated = std::find_if(metrics.classes.begin(), metrics.classes.end(), [&](const ClassTimes& times) {
      return times.name == name_of(use.kernel_class);
    });
    REQUIRE(simulated != metrics.classes.end());
    check_alike(use.busy, simulated->busy);
  }
}

TEST_CASE("of a trace of whole phases analyze takes none for attention, and says that it cannot tell") {
  const Measured m = understand(read(trace(true)));
  const Analysis analysis = analyze(m);
  const RankAnalysis& rank = analysis.ranks.at(0);
  CHECK_FALSE(has_class(rank, KernelClass::attention));
  CHECK(has_class(rank, KernelClass::dispatch));
  CHECK(has_class(rank, KernelClass::combine));
  CHECK(analysis.unclassified.empty());  // nothing that a mapping file could name
  REQUIRE(m.trace.notes.size() == 1);
  CHECK(m.trace.notes[0].find("whole phases in place of their kernels") != std::string::npos);
  const TemporaryFolder folder;
  const std::string table = run_moeline({"analyze", folder.write("rank_0.json", trace(true))}).out;
  CHECK(table.find("\nwhole phases") != std::string::npos);
  CHECK(table.find("\nattention ") == std::string::npos);
  CHECK(table.find("note: it holds whole phases in place of their kernels") != std::string::npos);
}

TEST_CASE("the slots of a step that was simulated slot by slot are whole phases, also where its tasks are written") {
  const Run step =
      run_scenario(load_setup(step_scenario(), small_step("1f1b", {"level=phase"})), {.record_changes = true});
  const std::string text =
      trace_of_rank(step.program.graph, step.timeline, 0, {.world_size = 256, .device_name = "h800"});
  const Measured m = understand(read(text));
  CHECK(analyze(m).unclassified.empty());
  REQUIRE(m.trace.notes.size() == 1);
  CHECK(m.trace.notes[0].find("whole phases in place of their kernels") != std::string::npos);
}

TEST_CASE("a mapping file may say what whole phases are") {
  const Measured m =
      understand(read(trace(true)), {.classes = {{"^attn", "attention"}}, .phases = {}, .communication = ""});
  CHECK(has_class(analyze(m).ranks.at(0), KernelClass::attention));
}

}  // TEST_SUITE("measured/own_traces")

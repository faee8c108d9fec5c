// The chunk of training in pieces: what flows, that the pieces do the whole's work, and what they cost.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/training_pieces") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kOrder =
    "compute: [attn(F), mlp(B), mlp(W), mlp(F), attn(B), attn(W)]\n"
    "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\n";
const std::string kTogether =
    "compute: [attn(F), [mlp(B), mlp(W)], mlp(F), attn(B), attn(W)]\n"
    "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\n";

Run run_chunk(const std::string& plan, const std::string& routing = "routing={distribution: exact}") {
  const TemporaryFolder folder;
  return run_scenario(load_setup(chunk_scenario(), {"ranks=folded", "samples=1", "launch=graph", routing,
                                                    "overlap=" + folder.write("plan.yaml", plan)}));
}

// Each piece of a phase of layer 2, from its first kernel's start to its last one's end.
std::vector<Span> pieces(const Run& run, const std::string& phase) {
  std::vector<Span> spans;
  const TaskGraph& graph = run.program.graph;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Phase& of = graph.phases()[graph.label(id).phase];
    if (of.name != phase || of.layer != 2 || graph.task_class(id).role == Role::host) continue;
    if (spans.size() <= of.piece) spans.resize(of.piece + 1, {.ready = {}, .start = Time::max(), .end = Time::min()});
    spans[of.piece].start = std::min(spans[of.piece].start, run.timeline.spans[id].start);
    spans[of.piece].end = std::max(spans[of.piece].end, run.timeline.spans[id].end);
  }
  return spans;
}

double sent(const Run& run) { return carried(run, tasks_of(run, ""), "NIC out"); }

}  // namespace

TEST_CASE("a piece of the chunk waits for its own piece of the phase before, and the next layer for all of them") {
  const Run run = run_chunk("pieces: 4\n" + kOrder);
  const std::pair<const char*, const char*> data[] = {
      {"dispatch(F)", "mlp(F)"}, {"mlp(F)", "combine(F)"}, {"combine(B)", "mlp(B)"}, {"mlp(B)", "dispatch(B)"}};
  for (const auto& phases : data) {
    const std::string next = phases.second;
    CAPTURE(next);
    const std::vector<Span> before = pieces(run, phases.first), after = pieces(run, next);
    REQUIRE(before.size() == 4);
    REQUIRE(after.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(before[i].end <= after[i].start);
  }
  const bool flows = pieces(run, "combine(F)")[0].start < pieces(run, "mlp(F)")[3].end;
  CHECK(flows);
  CHECK(pieces(run, "dispatch(B)")[3].end <= pieces(run, "attn(B)")[0].start);
}

TEST_CASE("pieces of the chunk together send and multiply what the whole does, and each starts again") {
  for (const char* routing : {"routing={distribution: exact}", "routing={distribution: balanced}"}) {
    CAPTURE(routing);
    const Run whole = run_chunk(kOrder, routing), cut = run_chunk("pieces: 4\n" + kOrder, routing);
    CHECK(sent(cut) == doctest::Approx(sent(whole)).epsilon(1e-3));
    CHECK(flops_of(cut) == doctest::Approx(flops_of(whole)).epsilon(0.01));
    CHECK(solo_us(cut) > solo_us(whole));
    CHECK(layer_us(cut) > layer_us(whole));
    for (const char* weights : {"transpose expert gate_up weights", "transpose shared down weight"}) {
      CHECK(tasks_of(cut, weights).size() == tasks_of(whole, weights).size());  // once for all pieces
    }
  }
}

TEST_CASE("gradients of weights are computed at once, or in turn with what gives them") {
  CHECK(pieces(run_chunk("pieces: 2\n" + kOrder), "mlp(W)").size() == 1);
  const Run run = run_chunk("pieces: 2\n" + kTogether);
  const std::vector<Span> given = pieces(run, "mlp(B)"), weights = pieces(run, "mlp(W)");
  REQUIRE(weights.size() == 2);
  CHECK(given[0].end <= weights[0].start);
  CHECK(weights[0].end <= given[1].start);
}

TEST_CASE("one piece is the chunk without pieces, on one rank and on all") {
  const TemporaryFolder folder;
  for (const char* ranks : {"ranks=folded", "ranks=all"}) {
    const auto span_of = [&](const std::string& plan) {
      const std::string overlap = "overlap=" + folder.write("plan.yaml", plan);
      return run_scenario(load_setup(chunk_scenario(), {ranks, "samples=1", overlap})).metrics.span;
    };
    CHECK(span_of("pieces: 1\n" + kOrder) == span_of(kOrder));
    CHECK(span_of("pieces: 2\n" + kOrder) > span_of(kOrder));
  }
}

TEST_CASE("a whole step of training goes by the pieces of its plan") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write(
      "scenario.yaml",
      "schema: 1\nmodel: deepseek-v3\nhardware: h800\nkernels: deepseek-2025-02\nschedule: dualpipe\nlayers: 8\n"
      "parallelism: {pp: 4, ep: 64, dp: 64}\n"
      "workload: {phase: train, global_batch_size: 512, micro_batch_size: 1, seq_len: 4096}\n");
  const auto step_us = [&](const std::string& plan) {
    return to_us(run_scenario(load_setup(scenario, {"overlap=" + folder.write("plan.yaml", plan)})).metrics.span);
  };
  const double whole = step_us(kOrder), cut = step_us("pieces: 2\n" + kOrder);
  CHECK(step_us("pieces: 1\n" + kOrder) == whole);
  CHECK(cut > whole);
  CHECK(cut < 1.1 * whole);
}

}  // TEST_SUITE("schedules/training_pieces")

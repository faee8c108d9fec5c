// SMs of each phase of a plan: what transfers run on, and what kernels beside them have.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"

TEST_SUITE("schedules/phase_sms") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kChunk =
    "compute: [attn(F), mlp(B), mlp(W), mlp(F), attn(B), attn(W)]\n"
    "communication: [combine(B), dispatch(F), dispatch(B), combine(F)]\nside: [mlp(W)]\n";
const std::string kPrefill =
    "compute: [attn 1, previous shared 0, attn 0, mlp 1, mlp 0, shared 1]\n"
    "communication: [previous combine 0, dispatch 1, dispatch 0, combine 1]\n";

Run run_planned(const std::string& scenario, const std::string& plan, std::vector<std::string> set = {}) {
  const TemporaryFolder folder;
  set.insert(set.end(), {"ranks=folded", "samples=1", "overlap=" + folder.write("plan.yaml", plan)});
  return run_scenario(load_setup(scenario, set));
}

// Held by kernels that stay on their SMs until they end, of a phase of some layer; -1 where these differ.
int sms_of(const Run& run, const std::string& phase) {
  std::optional<int> sms;
  const TaskGraph& graph = run.program.graph;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.task(id);
    const bool barrier = graph.task_class(id).name == row_of(Family::notify).task_class;
    const bool counts = task.hold == Hold::resident && !barrier && graph.phases()[graph.label(id).phase].name == phase;
    if (!counts) continue;
    if (sms && *sms != task.sms) return -1;
    sms = task.sms;
  }
  return sms.value_or(0);
}

}  // namespace

TEST_CASE("transfers that all have equally many SMs are as with comm.num_sms, and others leave these") {
  const std::string chunk = "sms: {dispatch(F): 16, dispatch(B): 16, combine(F): 16, combine(B): 16}\n" + kChunk;
  CHECK(layer_us(run_planned(chunk_scenario(), chunk)) ==
        layer_us(run_planned(chunk_scenario(), kChunk, {"comm.num_sms=16"})));
  const Run prefill = run_planned(prefill_scenario(), "sms: {dispatch: 16, combine: 16}\n" + kPrefill, {"layers=8"});
  CHECK(layer_us(prefill) == layer_us(run_planned(prefill_scenario(), kPrefill, {"layers=8", "comm.num_sms=16"})));
}

TEST_CASE("each phase has the SMs that the plan gives it, others leave what the largest transfer holds") {
  const Run run = run_planned(chunk_scenario(), "sms: {dispatch(F): 12, combine(B): 24, mlp(F): 120}\n" + kChunk);
  CHECK(sms_of(run, "dispatch(F)") == 12);
  CHECK(sms_of(run, "combine(B)") == 24);
  CHECK(sms_of(run, "combine(F)") == 20);
  CHECK(sms_of(run, "mlp(F)") == 120);
  CHECK(sms_of(run, "mlp(B)") == 132 - 24);
}

TEST_CASE("on fewer SMs a transfer takes longer, on more SMs experts do not") {
  const auto phase_us = [](const std::string& sms, const char* name) {
    const Run run = run_planned(chunk_scenario(), "sms: {" + sms + "}\n" + kChunk);
    double us = 0;
    for (const PhaseTimes& each : run.phases) us += each.phase == name ? to_us(each.solo) : 0;
    return us;
  };
  CHECK(phase_us("dispatch(B): 8", "dispatch(B)") > 1.1 * phase_us("dispatch(B): 20", "dispatch(B)"));
  CHECK(phase_us("mlp(F): 124", "mlp(F)") < phase_us("mlp(F): 100", "mlp(F)"));
}

TEST_CASE("buffers are made for the transfer that has most SMs") {
  const auto gib_of = [](const std::string& sms, const std::string& num_sms) {
    const Run run = run_planned(prefill_scenario(), sms + kPrefill, {"comm.num_sms=" + num_sms});
    return gib(run.inference()->memory.communication);
  };
  CHECK(gib_of("sms: {combine: 24}\n", "12") == gib_of("", "24"));
  CHECK(gib_of("sms: {combine: 8}\n", "12") == gib_of("", "12"));
}

}  // TEST_SUITE("schedules/phase_sms")

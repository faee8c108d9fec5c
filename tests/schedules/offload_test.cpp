// Activations and optimizer states that wait in the host's memory, over a link that the NIC's traffic shares.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/memory/lasting_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "tests/support/megatron_step.hpp"

TEST_SUITE("schedules/offload") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr double kGB = 1e9;
const std::string kFastLink = "hardware.host_GBps=100000";

// Of Qwen3-235B on two stages.
Setup setup_of(const Set& more) { return megatron_step("qwen3-235b-a22b", 2, more); }
Run run_of(const Set& more) { return run_scenario(setup_of(more)); }

const StepMemory& peak(const Run& run) { return run.step()->fullest().memory.peak; }

// Bytes that the copies of rank 0 move.
double copied_bytes(const Run& run, const std::string& stream) {
  const TaskGraph& graph = run.program.graph;
  double bytes = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Stream& on = graph.streams()[graph.label(task).stream];
    if (on.rank == 0 && on.name == stream)
      bytes += to_us(graph.task(task).solo) * 1e-6 * run.setup.machine.facts.host_GBps * kGB;
  }
  return bytes;
}

void check_refused(const Set& more, const std::string& says) {
  check_refused_with(says, [&] { (void)setup_of(more); });
}

}  // namespace

TEST_CASE("what is offloaded over a link of any speed costs no time, and most of it waits on the host") {
  const Run kept = run_of({kFastLink});
  const Run moved =
      run_of({kFastLink, "training.offload=[qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1, moe_act]"});
  CHECK(step_ms_of(moved) == doctest::Approx(step_ms_of(kept)).epsilon(0.002));
  CHECK(moved.step()->fullest().memory.host > 0.5 * peak(kept).activations);
  CHECK(moved.step()->fullest().memory.host + peak(moved).activations ==
        doctest::Approx(peak(kept).activations).epsilon(0.15));
}

TEST_CASE("copies move each module's input once each way: of the output projection heads x head_dim numbers in BF16") {
  const Run run = run_of({"training.offload=[attn_proj]"});
  const double layer = 4096.0 * 64 * 128 * 2;
  const int layers = 4, micro_batches = 8;  // of the first stage, whose backward passes never follow at once
  CHECK(copied_bytes(run, "to the host") == doctest::Approx(layers * micro_batches * layer));
  CHECK(copied_bytes(run, "from the host") == doctest::Approx(layers * micro_batches * layer));
}

TEST_CASE("the last layer's activations stay where their backward pass comes next") {
  const Run run = run_of({"parallelism={pp: 1, ep: 8, dp: 8}", "training.offload=[attn_proj]"});
  CHECK(copied_bytes(run, "to the host") == doctest::Approx(7 * 8 * 4096.0 * 64 * 128 * 2));
}

TEST_CASE("a link that is too slow for its bytes sets the pace") {
  const Run run = run_of({"hardware.host_GBps=5", "training.offload=[moe_act, core_attn]"});
  const double least_ms = copied_bytes(run, "to the host") / (5 * kGB) * 1e3;
  CHECK(least_ms > 2 * step_ms_of(run_of({})));
  CHECK(step_ms_of(run) >= least_ms);
  CHECK(step_ms_of(run) < 2.2 * least_ms);  // out in forward passes, back in backward passes
}

TEST_CASE("traffic of the NIC shares the link to the host, unless the NIC is faster than that") {
  const Set moved = {"parallelism={pp: 2, ep: 16, dp: 16}", "workload.global_batch_size=128",
                     "training.offload=[expert_fc1, moe_act, core_attn, attn_proj]"};
  const auto with = [&](const char* rate) {
    Set set = moved;
    set.push_back(std::string("hardware.host_GBps=") + rate);
    return step_ms_of(run_of(set));
  };
  CHECK(with("50") > 1.02 * with("49.9"));  // a faster link, but the NIC's 50 GB/s pass it
}

TEST_CASE(
    "optimizer states leave as the step begins and come back behind the last gradients, which takes their bytes' "
    "time") {
  const Run kept = run_of({}), moved = run_of({"training.offload_optimizer=true"});
  const double bytes = peak(kept).optimizer;
  const double rate = moved.setup.machine.facts.host_GBps * kGB;
  CHECK(step_ms_of(moved) - step_ms_of(kept) == doctest::Approx(bytes / rate * 1e3).epsilon(0.03));
  const RankStep& rank = moved.step()->fullest();
  CHECK(rank.memory.host == doctest::Approx(bytes));
  CHECK(rank.memory.changes.front().optimizer == doctest::Approx(bytes));
  CHECK(rank.memory.changes.back().optimizer < 1);  // behind the end of the step
  const Run fast = run_of({kFastLink, "training.offload_optimizer=true"});
  const double apart = std::max(peak(kept).activations, bytes);  // never there at once
  CHECK(peak(fast).activations + peak(fast).optimizer == doctest::Approx(apart).epsilon(0.001));
}

TEST_CASE("a host that launches kernels one by one sends the states away before all of them") {
  const Run run = run_of({"launch=stream", "training.offload_optimizer=true"});
  const double copy_us = run.step()->ranks[0].memory.host / (run.setup.machine.facts.host_GBps * 1e3);
  Time left = Time::max();
  for (const OffloadedStay& stay : run.step()->stays) {
    if (stay.what.rank == 0 && !stay.what.block) left = std::min(left, stay.to);
  }
  CHECK(to_us(left) < 1.5 * copy_us);
}

TEST_CASE("every pipeline ends with nothing kept, and keeps no less than the least that it was said to need") {
  const std::vector<Set> pipelines = {{"schedule=gpipe"},
                                      {"schedule=1f1b"},
                                      {"schedule=interleaved-1f1b", "parallelism.virtual_pp=2"},
                                      {"schedule=interleaved-1f1b", "parallelism.virtual_pp=2", "overlap=combined"},
                                      {"schedule=zb1p"},
                                      {"schedule=zbv"},
                                      {"schedule=dualpipe"},
                                      {"schedule=dualpipev"}};
  for (Set set : pipelines) {
    CAPTURE(set.back());
    set.emplace_back("training={offload: [core_attn, attn_proj, expert_fc1], offload_optimizer: true}");
    for (const char* level : {"operator", "phase"}) {
      CAPTURE(level);
      Set at = set;
      at.push_back(std::string("level=") + level);
      const Run run = run_of(at);
      for (const RankStep& rank : run.step()->ranks) {
        CHECK(std::abs(rank.memory.changes.back().activations) < 1);
        for (const MemoryChange& change : rank.memory.changes) CHECK(change.activations > -1);
        CHECK(rank.memory.changes.back().passes == 0);
      }
      CHECK(least_memory_bytes(run.setup) < peak(run).total());
    }
  }
}

TEST_CASE("slots tell the step of offloaded operators within 4 %") {
  for (const char* schedule : {"1f1b", "dualpipe"}) {
    CAPTURE(schedule);
    const Set set = {std::string("schedule=") + schedule, "training.offload=[core_attn, attn_proj]"};
    Set slots = set;
    slots.emplace_back("level=phase");
    CHECK(step_ms_of(run_of(slots)) == doctest::Approx(step_ms_of(run_of(set))).epsilon(0.04));
  }
}

TEST_CASE("what keeps nothing to offload is refused by name") {
  check_refused({"training.offload=[attn_norm]"}, "attn_norm: the norm is a part of qkv_linear");
  check_refused({"training.offload=[core_atn]"}, "did you mean 'core_attn'?");
  check_refused({"training.offload=[moe_act, moe_act]"}, "lists moe_act twice");
  check_refused({"training={recompute: full, offload: [moe_act]}"}, "only layers' inputs are kept");
  check_refused({"hardware.host_GBps=0", "training.offload=[moe_act]"}, "needs a machine with host_GBps");
  check_refused({"model=deepseek-v3", "layers=8", "training.offload=[moe_act]"}, "belongs to the operators megatron");
  check_refused({"model=deepseek-v3", "training={operators: megatron, recompute: [mla_up_proj], offload: [core_attn]}"},
                "mla_up_proj computes its inputs again");
}

}  // TEST_SUITE("schedules/offload")

// Layouts of training by Megatron's operators beyond tensor and expert parallelism: ranks that share sequences or
// experts, and replicas that split gradients and parameters.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/step.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;

// Eight layers of Qwen3-235B in BF16 on H100, without a host.
Run run_of(const Set& more) {
  const std::string text =
      "schema: 1\nmodel: qwen3-235b-a22b\nhardware: h100\nschedule: 1f1b\nparallelism: {pp: 1, ep: 8, dp: 8}\n"
      "workload: {phase: train, seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\nlayers: 8\n"
      "routing: {distribution: exact}\nlaunch: graph\n";
  return run_scenario(read_setup(Spec::parse("scenario.yaml", text), more));
}

double bytes_of(const Run& run, double StepMemory::*part) { return run.step()->ranks.front().peak.*part; }

std::string refusal(const Set& more) {
  try {
    (void)run_of(more);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void check_refused(const Set& more, const std::string& says) {
  CAPTURE(says);
  const std::string said = refusal(more);
  CHECK_MESSAGE(said.find(says) != std::string::npos, "says: " << said);
}

// Of a sequence of 128 Ki tokens on one GPU's share of it.
Set long_sequences(const std::string& parallelism, const std::string& context) {
  return {"parallelism=" + parallelism, "workload.seq_len=131072", "workload.global_batch_size=8", "layers=2",
          "comm.context=" + context};
}

}  // namespace

TEST_CASE("ranks that share sequences and experts run in every pipeline") {
  for (const std::string& schedule : kSchedules) {
    for (const char* layout : {"{tp: 2, cp: 2, pp: 4, ep: 8, dp: 2}", "{tp: 2, pp: 4, ep: 4, moe_tp: 2, dp: 4}"}) {
      CAPTURE(schedule);
      CAPTURE(layout);
      Set set = {"schedule=" + schedule, std::string("parallelism=") + layout};
      if (schedule == "interleaved-1f1b") set.emplace_back("parallelism.virtual_pp=2");
      CHECK(run_of(set).step()->ranks.size() == 4);
    }
  }
}

TEST_CASE("every rank of a group that shares sequences or experts simulated gives what one of them does") {
  for (const char* layout : {"{cp: 4, ep: 8, dp: 2}", "{ep: 4, moe_tp: 2, dp: 8}"}) {
    CAPTURE(layout);
    const auto us = [&](const char* ranks) {
      const Run run = run_of({"schedule=sequential", std::string("parallelism=") + layout,
                              std::string("ranks=") + ranks, "layers=4", "speed_spread=0"});
      return to_us(run.metrics.span);
    };
    CHECK(us("folded") == doctest::Approx(us("all")).epsilon(0.01));
  }
}

TEST_CASE("a rank that shares sequences has its part of their work and activations, and all of a replica's optimizer") {
  const Set batch = {"workload.global_batch_size=64", "comm.mode=normal"};
  const auto with = [&](const char* layout) {
    Set set = batch;
    set.push_back(std::string("parallelism=") + layout);
    return run_of(set);
  };
  const Run alone = with("{pp: 1, ep: 8, dp: 16}"), four = with("{pp: 1, cp: 4, ep: 8, dp: 4}");
  CHECK(four.program.model_flops == doctest::Approx(alone.program.model_flops).epsilon(1e-6));  // 4 times as many
  CHECK(bytes_of(four, &StepMemory::activations) ==
        doctest::Approx(bytes_of(alone, &StepMemory::activations) / 4).epsilon(0.01));
  CHECK(bytes_of(four, &StepMemory::optimizer) == doctest::Approx(bytes_of(alone, &StepMemory::optimizer)));
}

TEST_CASE("the optimizer's states of all ranks that share experts add up to the model") {
  const Run whole = run_of({"parallelism={pp: 1, ep: 8, dp: 16}"});
  const Run split = run_of({"parallelism={pp: 1, ep: 4, moe_tp: 2, dp: 16}"});
  CHECK(bytes_of(split, &StepMemory::optimizer) == doctest::Approx(bytes_of(whole, &StepMemory::optimizer)));
  CHECK(bytes_of(split, &StepMemory::weights) == doctest::Approx(bytes_of(whole, &StepMemory::weights)));
}

TEST_CASE("of long sequences a ring hides what gathering exposes") {
  const auto exposed = [](const char* context) {
    return ratio(run_of(long_sequences("{pp: 1, cp: 16, ep: 8, dp: 1}", context)).metrics.exposed_comm,
                 run_of(long_sequences("{pp: 1, cp: 16, ep: 8, dp: 1}", context)).metrics.span);
  };
  CHECK(exposed("ring") < exposed("all_gather"));
}

TEST_CASE("ZeRO-2 keeps a replica's part of the gradients, and reduces them after every micro-batch") {
  const Run one = run_of({"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=256"});
  const Run two =
      run_of({"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=256", "training={zero: 2}"});
  CHECK(bytes_of(two, &StepMemory::optimizer) == bytes_of(one, &StepMemory::optimizer));
  CHECK(bytes_of(two, &StepMemory::weights) == bytes_of(one, &StepMemory::weights));
  // Two of eight layers are whole, the others are the rank's 64th, of experts its eighth.
  CHECK(bytes_of(two, &StepMemory::gradients) > 0.25 * bytes_of(one, &StepMemory::gradients));
  CHECK(bytes_of(two, &StepMemory::gradients) < 0.42 * bytes_of(one, &StepMemory::gradients));
  const auto reductions = [](const Run& run) {
    int count = 0;
    for (const Phase& phase : run.program.graph.phases()) count += phase.name == "reduce-scatter" ? 1 : 0;
    return count;
  };
  CHECK(reductions(two) == 4 * reductions(one));  // micro-batches
  CHECK(two.metrics.span > one.metrics.span);
}

TEST_CASE("ZeRO-3 gathers a layer's parameters while the one before it runs") {
  const Set set = {"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=256", "training={zero: 3}"};
  const Run three = run_of(set);
  const Run two =
      run_of({"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=256", "training={zero: 2}"});
  CHECK(bytes_of(three, &StepMemory::weights) < 0.42 * bytes_of(two, &StepMemory::weights));
  CHECK(three.metrics.span > two.metrics.span);
  // Eight layers forward and all but the one at which the pass turns backward, of four micro-batches; attention's
  // parameters and experts' apart. The first pass of all has nothing before it.
  int gathers = 0;
  for (const Phase& phase : three.program.graph.phases()) gathers += phase.name == "gather" ? 1 : 0;
  CHECK(gathers == 4 * 2 * (8 + 7) - 3 * 2);
}

TEST_CASE("by slots a step that splits everything takes as long as by operators") {
  const Set set = {"parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=256", "training={zero: 3}"};
  Set by_slot = set;
  by_slot.emplace_back("level=phase");
  CHECK(step_ms(run_of(by_slot)) == doctest::Approx(step_ms(run_of(set))).epsilon(0.1));
}

TEST_CASE("layouts that cannot be are refused by their key") {
  check_refused({"parallelism={pp: 1, cp: 3, ep: 8, dp: 8}"}, "ep must divide tp x cp, or be a multiple of it");
  check_refused({"parallelism={pp: 1, cp: 8, ep: 8, dp: 8}", "workload.seq_len=4088"},
                "cp x 2 x tp must divide the 4088 tokens of a sequence: 16 does not");
  check_refused({"model=gpt-oss-120b", "precision={linear: bf16, experts: bf16}",
                 "parallelism={pp: 1, cp: 2, ep: 8, dp: 4}", "comm={context: ring}"},
                "comm.context ring, is not what Transformer Engine has for sliding windows; there is: all_gather");
  check_refused({"model=qwen3-next-80b-a3b", "parallelism={pp: 1, cp: 2, ep: 8, dp: 4}"}, "linear attention");
  check_refused({"parallelism={pp: 1, ep: 4, moe_tp: 2, dp: 8}", "comm={mode: normal}"},
                "comm.mode normal, sends each token to whole experts: moe_tp is 2; there is: all_to_all");
  check_refused({"parallelism={pp: 1, ep: 8, dp: 8}", "comm={context: ring}"}, "comm.context belongs to context");
  check_refused({"parallelism={pp: 2, ep: 8, dp: 8}", "training={zero: 3}"},
                "training.zero 3, splits every block between replicas: with pp 1");
  check_refused({"training={zero: 2, overlap_gradients: false}"}, "training.overlap_gradients false, does not apply");
}

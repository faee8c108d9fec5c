// Layouts of training by Megatron's operators beyond tensor and expert parallelism: ranks that share sequences or
// experts, and replicas that split gradients and parameters.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/run/run_metrics.hpp"
#include "schedules/scenario/scenario.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/megatron_step.hpp"
#include "tests/support/step.hpp"
#include "timeline/intervals.hpp"

TEST_SUITE("schedules/training_layouts") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Of Qwen3-235B on one stage.
Run run_of(const Set& more) { return run_scenario(megatron_step("qwen3-235b-a22b", 1, more)); }

double bytes_of(const Run& run, double StepMemory::*part) { return run.step()->ranks.front().memory.peak.*part; }

void check_refused(const Set& more, const std::string& says) {
  check_refused_with(says, [&] { (void)run_of(more); });
}

// Of all kernels of a family, executed as often as they are.
double solo_of(const Run& run, const std::string& family) {
  double us = 0;
  for (const ProvenanceUse& use : run.program.provenance) us += name_of(use.family) == family ? use.solo_us : 0;
  return us;
}

int launches(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  int count = 0;
  for (TaskId task = 0; task < graph.size(); ++task) count += graph.task_name(task) == "launch" ? 1 : 0;
  return count;
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

namespace {

// Of rank 0's layers, in the order in which their backward passes begin, and in which their gradients are reduced.
struct GradientTimes {
  std::vector<Time> begin, reduced;
};

GradientTimes gradient_times(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Time> backward;  // by micro-batch and layer
  std::map<std::uint32_t, Time> reductions;                          // by phase
  for (TaskId task = 0; task < graph.size(); ++task) {
    const std::uint32_t number = graph.label(task).phase;
    const Phase& phase = graph.phases()[number];
    if (phase.rank != 0 || graph.task_class(task).role == Role::host) continue;
    const Span& span = run.timeline.spans[task];
    if (phase.name == "reduce-scatter") reductions[number] = span.end;
    if (!phase.name.ends_with("(B)")) continue;
    Time& begin = backward.try_emplace({phase.micro_batch, phase.layer}, Time::max()).first->second;
    begin = std::min(begin, span.start);
  }
  GradientTimes times;
  for (const auto& [block, begin] : backward) times.begin.push_back(begin);
  std::vector<Time> ends;
  for (const auto& [phase, end] : reductions) ends.push_back(end);
  std::sort(times.begin.begin(), times.begin.end());
  std::sort(ends.begin(), ends.end());
  for (std::size_t i = 1; i < ends.size(); i += 2) times.reduced.push_back(ends[i]);  // attention's, then experts'
  return times;
}

}  // namespace

TEST_CASE("ZeRO-2 and -3 have the gradients of two layers at once, as their memory says, and the backward pass waits") {
  for (const char* zero : {"2", "3"}) {
    const Run run = run_of({"schedule=1f1b", "parallelism={pp: 1, ep: 8, dp: 64}", "workload.global_batch_size=512",
                            std::string("training={zero: ") + zero + "}"});
    const auto [begin, reduced] = gradient_times(run);
    REQUIRE(begin.size() == 8 * 8);  // micro-batches, layers
    REQUIRE(reduced.size() == begin.size());
    std::size_t beside = 0;
    for (std::size_t i = 2; i < begin.size(); ++i) {
      CHECK(begin[i] >= reduced[i - 2]);
      beside += begin[i] < reduced[i - 1] ? 1 : 0;
    }
    CHECK(beside > begin.size() / 2);
    CHECK(reduced.back() - begin.back() <
          2 * (begin.back() - begin[begin.size() - 2]));  // hardly any is left at the end
  }
}

namespace {

// Most of rank 0's layers whose parameters are there at once: from the start of a layer's gather to the end of the pass
// through it. Where a pass turns, the layer at which it does is there already.
int most_whole_layers(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Interval> forward, backward;  // passes by micro-batch and layer
  std::vector<std::pair<Time, int>> changes;                                      // of attention's and experts' gathers
  std::vector<Time> gathers;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Phase& phase = graph.phases()[graph.label(task).phase];
    if (phase.rank != 0 || graph.task_class(task).role == Role::host) continue;
    const Span& span = run.timeline.spans[task];
    if (phase.name == "gather") gathers.push_back(span.start);
    auto* const passes = phase.name.ends_with("(F)") ? &forward : phase.name.ends_with("(B)") ? &backward : nullptr;
    if (passes == nullptr) continue;
    Interval& pass =
        passes->try_emplace({phase.micro_batch, phase.layer}, Interval{Time::max(), Time::min()}).first->second;
    pass = {std::min(pass.start, span.start), std::max(pass.end, span.end)};
  }
  const auto last = static_cast<std::uint32_t>(run.setup.scenario.layers - 1);
  std::sort(gathers.begin(), gathers.end());
  for (std::size_t i = 1; i < gathers.size(); i += 2) changes.emplace_back(gathers[i], 1);
  for (const auto* passes : {&forward, &backward}) {
    for (const auto& [place, pass] : *passes) {
      const bool turns = place.second == (passes == &forward ? last : 0);
      if (!turns) changes.emplace_back(pass.end, -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  int whole = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, whole += change);
  return most;
}

}  // namespace

TEST_CASE("ZeRO-3 has the parameters of two layers at once, as its memory says") {
  CHECK(most_whole_layers(run_of({"schedule=1f1b", "parallelism={pp: 1, ep: 8, dp: 64}",
                                  "workload.global_batch_size=512", "training={zero: 3}"})) == 2);
}

TEST_CASE("ZeRO saves on the stage with the embedding, too, its largest block of what replicas share") {
  const auto peak = [](const char* zero) {
    return run_of({"schedule=1f1b", "parallelism={pp: 4, ep: 8, dp: 8}", "workload.global_batch_size=64", "layers=all",
                   "level=phase", std::string("training={zero: ") + zero + "}"})
        .step()
        ->ranks.front()
        .memory.peak;
  };
  const StepMemory one = peak("1"), two = peak("2"), three = peak("3");
  CHECK(two.gradients < 0.999 * one.gradients);
  CHECK(three.weights < 0.999 * two.weights);
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

TEST_CASE("ZeRO-3 on a pipeline gathers each stage's layers, in both directions") {
  const auto run = [&](const char* zero) {
    return run_of({"parallelism={pp: 2, ep: 8, dp: 64}", "workload.global_batch_size=256",
                   std::string("training={zero: ") + zero + "}"});
  };
  const Run three = run("3"), one = run("1");
  int gathers = 0;
  for (const Phase& phase : three.program.graph.phases()) gathers += phase.name == "gather" ? 1 : 0;
  // Each rank passes its four layers eight times, attention's parameters and experts' apart. Where it turns from
  // forward to backward or back, one layer is there: seven times on the last rank, two less on the first.
  CHECK(gathers == 2 * (8 * 4 - 5) + 2 * (8 * 4 - 7));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(three.step()->ranks[rank].memory.peak.weights < 0.7 * one.step()->ranks[rank].memory.peak.weights);
  }
}

TEST_CASE("ZeRO-3 runs in every pipeline of a whole model, where some passes of a block have nothing to do") {
  for (const std::string& schedule : kSchedules) {
    if (schedule.starts_with("dualpipe")) continue;  // whose passes overlap
    CAPTURE(schedule);
    const std::string chunks = schedule == "interleaved-1f1b" ? "2" : "1";
    const auto run = [&](const char* zero) {
      Set set = {"schedule=" + schedule,
                 "parallelism={pp: 2, ep: 8, dp: 64}",
                 "workload.global_batch_size=512",
                 "layers=all",
                 "level=phase",
                 std::string("training={zero: ") + zero + "}"};
      if (chunks == "2") set.emplace_back("parallelism.virtual_pp=2");
      return run_of(set);
    };
    const Run one = run("1"), three = run("3");
    CHECK(three.program.model_flops == doctest::Approx(one.program.model_flops));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(three.step()->ranks[rank].memory.peak.weights < one.step()->ranks[rank].memory.peak.weights);
    }
  }
}

TEST_CASE("slots of a rank do not overlap, whatever comes and goes beside them") {
  for (const char* schedule : {"1f1b", "v-half", "zb-h2"}) {
    for (const char* zero : {"1", "2", "3"}) {
      CAPTURE(schedule);
      CAPTURE(zero);
      const Run run = run_of({std::string("schedule=") + schedule, "parallelism={pp: 4, ep: 8, dp: 64}",
                              "workload.global_batch_size=512", std::string("training={zero: ") + zero + "}"});
      const RankStep& rank = run.step()->ranks[1];
      Time slots{};
      for (const PhaseTimes& slot : run.phases) slots += slot.rank == 1 ? slot.end - slot.start : Time::zero();
      CHECK(ms(slots + rank.parts.bubble + rank.parts.optimizer) == doctest::Approx(step_ms(run)).epsilon(0.001));
    }
  }
}

TEST_CASE("what no replica shares is not kept twice by ZeRO-3") {
  const auto peak = [](const char* zero) {  // every rank has experts of its own
    return run_of({"parallelism={pp: 1, ep: 8, dp: 8}", "layers=2", std::string("training={zero: ") + zero + "}"})
        .step()
        ->ranks.front()
        .memory.peak;
  };
  CHECK(peak("3").weights <= peak("1").weights);
  CHECK(peak("2").gradients <= peak("1").gradients);
}

TEST_CASE("parameters come beside the first forward pass of each stage, or behind the optimizer, of 800 Gb/s") {
  for (const char* schedule : {"1f1b", "zb1p", "dualpipe", "zbv"}) {
    CAPTURE(schedule);
    const auto run = [&](const char* overlap, const char* level) {
      return run_of({std::string("schedule=") + schedule, "parallelism={pp: 2, ep: 8, dp: 64}",
                     "workload.global_batch_size=512", "hardware.nic_GBps=100", std::string("level=") + level,
                     std::string("training.overlap_parameters=") + overlap});
    };
    const Run beside = run("true", "operator"), behind = run("false", "operator");
    CHECK(beside.metrics.span < behind.metrics.span);
    CHECK(solo_of(beside, "all_gather") == doctest::Approx(solo_of(behind, "all_gather")).epsilon(0.1));  // in parts
    CHECK(step_ms(run("true", "phase")) == doctest::Approx(step_ms(beside)).epsilon(0.02));
    // Where a pass waits for activations, its parameters are there before: they are no part of its slot.
    CHECK(ms(beside.step()->ranks.back().parts.bubble) >= 0.9 * ms(behind.step()->ranks.back().parts.bubble));
  }
}

TEST_CASE("tensor parallel ranks sum the gradients of what each has whole: two norms and the router of a layer") {
  const Run run = run_of({"parallelism={tp: 2, pp: 1, ep: 8, dp: 4}"});
  const Architecture& model = run.setup.model;
  const double norms = 2 * model.hidden_size + 2 * model.layer(0).attention.qk_dim;
  const double router = static_cast<double>(model.n_routed_experts) * model.hidden_size;
  double bytes = 0;
  for (const KernelWork& kernel : run.program.kernels) {
    if (kernel.module == "optimizer/tensor parallel") bytes += kernel.op.traffic.message_bytes;
  }
  CHECK(bytes == doctest::Approx(8 * 4 * (norms + router)));
}

TEST_CASE("parts of a layer in graphs launch less, and the host of a layer does not hold up what it would") {
  const auto run = [](const std::string& launch) {
    return run_of({"launch=" + launch, "workload.seq_len=512", "comm.mode=all_to_all"});
  };
  const Run stream = run("stream"), attention = run("[attn]"), most = run("[attn, moe_router, moe_preprocess]");
  CHECK(launches(stream) > launches(attention));
  CHECK(launches(attention) > launches(most));
  CHECK(launches(most) > launches(run("graph")));
  CHECK(step_ms(stream) > step_ms(attention));
  CHECK(step_ms(attention) > step_ms(most));
  CHECK(stream.program.model_flops == most.program.model_flops);
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
  check_refused({"training={zero: 3}", "overlap=combined"}, "training.zero 3, is not modelled where passes overlap");
  check_refused({"training={overlap_parameters: true, zero: 0}"}, "training.overlap_parameters needs the operators");
  check_refused({"training={delay_weight_gradients: true}"}, "delay_weight_gradients belongs to overlap: combined");
  check_refused({"parallelism={tp: 8, pp: 1, ep: 1, dp: 1}", "overlap=combined", "comm={mode: none}"},
                "overlap hides an all-to-all behind another pass, and there is none");
  check_refused({"schedule=dualpipe", "parallelism={pp: 2, ep: 8, dp: 8}", "overlap=combined"},
                "overlap combined belongs to 1f1b and interleaved-1f1b; dualpipe overlaps by a plan");
  check_refused({"launch=[attn, mlp]"}, "launch mlp: no layer has a dense network");
  check_refused({"model=moonlight-16b-a3b", "launch=[mlp]"}, "launch mlp: no layer has a dense network");  // of the 8
  check_refused({"launch=[moe_preprocess]"}, "launch moe_preprocess, goes with moe_router");
  check_refused({"launch=[attention]"}, "launch names an unknown layer part 'attention'");
  check_refused({"training={zero: 2, overlap_gradients: false}"}, "training.overlap_gradients false, does not apply");
}

}  // TEST_SUITE("schedules/training_layouts")

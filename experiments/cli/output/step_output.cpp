#include "experiments/cli/output/simulate_output.hpp"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "experiments/cli/output/memory_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "moe/memory.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {

// A whole step of training as a program reads it.

namespace {

double in_ms(Time time) { return to_us(time) / 1e3; }

struct RankOfStep {
  std::size_t rank;
  const RankStep& step;
  bool offloads_optimizer;
};

std::vector<RankOfStep> ranks_of(const Run& run) {
  std::vector<RankOfStep> ranks;
  for (const RankStep& step : run.step()->ranks) {
    ranks.push_back({ranks.size(), step, run.setup.scenario.training.offload_optimizer});
  }
  return ranks;
}

std::vector<std::string> blocks_of_stages(const Run& run) {
  std::vector<std::string> stages;
  for (const StageBlocks& blocks : run.step()->layout.stages) stages.push_back(describe(blocks));
  return stages;
}

// [ms, GiB] at each change.
NumberPairs over_time(const RankStep& step, double MemoryChange::*bytes) {
  NumberPairs pairs;
  for (const MemoryChange& change : step.memory.changes) pairs.push_back({in_ms(change.at), gib(change.*bytes)});
  return pairs;
}

Fields<RankOfStep> memory_of_rank_fields() {
  const auto part = [](double StepMemory::*bytes) {
    return [bytes](const RankOfStep& rank) { return gib(rank.step.memory.peak.*bytes); };
  };
  return Fields<RankOfStep>()
      .add("weights_gib", "weights", part(&StepMemory::weights))
      .add("gradients_gib", "gradients", part(&StepMemory::gradients))
      .add("optimizer_gib", "optimizer states", part(&StepMemory::optimizer))
      .add("activations_gib", "activations saved for backward passes", part(&StepMemory::activations))
      .add("workspace_gib", "temporaries", part(&StepMemory::workspace))
      .add("communication_gib", "communication buffers", part(&StepMemory::communication))
      .add("total_gib", "all of them", [](auto& r) { return gib(r.step.memory.peak.total()); })
      .add("host_gib", "what is offloaded to the host",
           [](auto& r) { return only_if(r.step.memory.host > 0, gib(r.step.memory.host)); })
      .add("peak_at_ms", "ms from the step's begin to the peak", [](auto& r) { return in_ms(r.step.memory.peak_at); },
           {.decimals = 6})
      .add("most_activations", "micro-batches whose activations are kept at once, of one chunk",
           [](auto& r) { return r.step.memory.most_passes; })
      .add("activations_over_time", "activations: [ms, GiB] at each change",
           [](auto& r) { return over_time(r.step, &MemoryChange::activations); })
      .add("optimizer_over_time", "optimizer states, where they are offloaded: [ms, GiB] at each change",
           [](auto& r) { return only_if(r.offloads_optimizer, over_time(r.step, &MemoryChange::optimizer)); });
}

Fields<RankOfStep> rank_fields() {
  auto fields = Fields<RankOfStep>().add("rank", "rank of the pipeline", &RankOfStep::rank);
  for (const NamedPart& part : kStepParts) {
    fields.add(part.key, part.meaning, [time = part.time](auto& r) { return in_ms(r.step.parts.*time); },
               {.decimals = 6});
  }
  return fields.object("memory", "GiB at its fullest", std::identity(), memory_of_rank_fields());
}

}  // namespace

Fields<Run> step_fields() {
  return Fields<Run>()
      .add("stages", "what each stage holds", blocks_of_stages)
      .list("ranks", "each rank of the pipeline", ranks_of, rank_fields());
}

// A whole step of training as a person reads it.

namespace {

std::string step_head(const Run& run) {
  const Scenario& s = run.setup.scenario;
  const std::string chunks = s.parallelism.virtual_pp > 1 ? fmt::format(" x {} chunks", s.parallelism.virtual_pp) : "";
  const std::string layers = s.whole_model ? "the whole model" : fmt::format("{} MoE layers alone", s.layers);
  const Parallelism& p = s.parallelism;
  const std::string tensor = p.tp > 1 ? fmt::format("TP{}, ", p.tp) : "";
  const std::string context = p.cp > 1 ? fmt::format("CP{}, ", p.cp) : "";
  const std::string shared = p.moe_tp > 1 ? fmt::format(" x MoE-TP{}", p.moe_tp) : "";
  const std::string gpus = p.attention_ranks() > 1 ? fmt::format("{} GPUs", p.attention_ranks()) : "GPU";
  const std::string sends = short_name(s.comm).empty() ? "" : ", " + short_name(s.comm);
  return fmt::format("{}: {} on {} {} ({}), {}{}PP{}{}, EP{}{}, {} micro-batches of {:.0f} tokens per {}, {}{}\n\n",
                     s.schedule, s.model, p.world(), s.hardware, s.kernels, tensor, context, p.pp, chunks, p.ep, shared,
                     micro_batches(s), as_train(s.workload).micro_batch_size * mean_seq_len(s), gpus, layers, sends);
}

// "embedding, 3 dense, 1 moe | 1 moe, head", the rank's stages.
std::string blocks_of(const Run& run, std::size_t rank) {
  std::set<std::size_t> stages;
  for (const ProgramSlot& slot : run.step()->layout.slots) {
    if (slot.rank == rank && has_forward(slot.slot.kind)) {
      stages.insert(static_cast<std::size_t>(slot.slot.forward.stage));
    }
  }
  std::vector<std::string> texts;
  for (const std::size_t stage : stages) texts.push_back(describe(run.step()->layout.stages[stage]));
  return fmt::format("{}", fmt::join(texts, " | "));
}

std::string rank_table(const Run& run) {
  std::string text = fmt::format("{:>4} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9} {:>7} {:>6}  {}\n", "rank", "F, ms", "B",
                                 "W", "F&B", "bubble", "optimizer", "GiB", "kept", "blocks of its stages");
  for (std::size_t rank = 0; rank < run.step()->ranks.size(); ++rank) {
    const RankStep& step = run.step()->ranks[rank];
    const StepParts& p = step.parts;
    text +=
        fmt::format("{:>4} {:>8.1f} {:>8.1f} {:>8.1f} {:>9.1f} {:>8.1f} {:>9.1f} {:>7.1f} {:>6}  {}\n", rank,
                    in_ms(p.forward), in_ms(p.backward), in_ms(p.weight), in_ms(p.overlapped), in_ms(p.bubble),
                    in_ms(p.optimizer), gib(step.memory.peak.total()), step.memory.most_passes, blocks_of(run, rank));
  }
  return text;
}

std::string fullest_memory_line(const Run& run) {
  const std::size_t rank = run.step()->fullest_rank();
  const RankStep& step = run.step()->ranks[rank];
  return fmt::format("memory: rank {} is the fullest, {:.1f} of {:.0f} GiB at {:.0f} ms{}: {}\n", rank,
                     gib(step.memory.peak.total()), run.setup.machine.facts.memory_gib, in_ms(step.memory.peak_at),
                     peak_phrase(step.memory), breakdown(parts_of(step.memory.peak)));
}

// The GPUs of a node are taken to be on the rank of the pipeline that has most there.
std::string host_memory_line(const Run& run) {
  double most = 0;
  for (const RankStep& step : run.step()->ranks) most = std::max(most, step.memory.host);
  if (most == 0) return "";
  const double gpus =
      std::min(run.setup.machine.facts.gpus_per_node, static_cast<double>(run.setup.scenario.parallelism.world()));
  return fmt::format(
      "host memory: at most {:.1f} GiB for each GPU, {:.0f} GiB for the {:.0f} of a node; link {:.0f} GB/s\n",
      gib(most), gib(most * gpus), gpus, run.setup.machine.facts.host_GBps);
}

}  // namespace

std::string step_table(const Run& run) {
  std::string text = step_head(run) + metric_table(run) + "\n" + rank_table(run) + "\n" + fullest_memory_line(run) +
                     host_memory_line(run);
  text += fmt::format("waits for the slowest rank of {}: {:.0f} ms expected on each rank, part of it hidden\n",
                      run.setup.scenario.parallelism.ep, run.program.waits_us / 1e3);
  if (run.setup.clock < 1) {
    text += fmt::format("clock: {:.0f} MHz on average under {:.0f} W\n", clock_mhz(run.setup),
                        run.setup.machine.facts.power_cap_w);
  }
  return text + fmt::format("{} tasks; {} fitted constants\n", run.program.graph.size(), run.program.constants.count());
}

// What a trace of a whole step shows besides its kernels.

void add_step_tracks(const Run& run, std::uint32_t rank, TraceOptions& trace) {
  constexpr std::uint32_t kSlots = 1;
  TraceTrack track{.id = kSlots, .name = "slots", .slices = {}};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseTimes& row = run.phases[i];
    if (row.rank != rank) continue;
    track.slices.push_back(
        {row.start, row.end, title_of(run.step()->layout.slots[i].slot), row.micro_batch, row.layer});
  }
  trace.tracks.push_back(std::move(track));
  const RankStep& step = run.step()->ranks[rank];
  StepMemory memory = step.memory.peak;
  TraceCounter counter{.name = "memory GiB", .values = {}};
  for (const MemoryChange& change : step.memory.changes) {
    memory.activations = change.activations;
    memory.workspace = change.workspace;
    memory.optimizer = change.optimizer;
    counter.values.emplace_back(change.at, gib(memory.total()));
  }
  trace.counters.push_back(std::move(counter));
}

}  // namespace moeline

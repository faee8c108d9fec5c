// A whole step of training as a person reads it.
#include <fmt/format.h>

#include <set>

#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/step_output.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {
namespace {

double in_ms(Time time) { return to_us(time) / 1e3; }

std::string step_head(const Run& run) {
  const Scenario& s = run.setup.scenario;
  const std::string chunks = s.parallelism.virtual_pp > 1 ? fmt::format(" x {} chunks", s.parallelism.virtual_pp) : "";
  const std::string layers = s.whole_model ? "the whole model" : fmt::format("{} MoE layers alone", s.layers);
  const Parallelism& p = s.parallelism;
  const std::string tensor = p.tp > 1 ? fmt::format("TP{}, ", p.tp) : "";
  const std::string context = p.cp > 1 ? fmt::format("CP{}, ", p.cp) : "";
  const std::string shared = p.moe_tp > 1 ? fmt::format(" x MoE-TP{}", p.moe_tp) : "";
  const std::string gpus = p.attention_ranks() > 1 ? fmt::format("{} GPUs", p.attention_ranks()) : "GPU";
  const std::string sms = s.comm.num_sms > 0 ? fmt::format(", {} communication SMs", s.comm.num_sms) : "";
  return fmt::format("{}: {} on {} {} ({}), {}{}PP{}{}, EP{}{}, {} micro-batches of {:.0f} tokens per {}, {}{}\n\n",
                     s.schedule, s.model, p.world(), s.hardware, s.kernels, tensor, context, p.pp, chunks, p.ep, shared,
                     micro_batches(s), as_train(s.workload).micro_batch_size * mean_seq_len(s), gpus, layers, sms);
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
    text += fmt::format("{:>4} {:>8.1f} {:>8.1f} {:>8.1f} {:>9.1f} {:>8.1f} {:>9.1f} {:>7.1f} {:>6}  {}\n", rank,
                        in_ms(p.forward), in_ms(p.backward), in_ms(p.weight), in_ms(p.overlapped), in_ms(p.bubble),
                        in_ms(p.optimizer), gib(step.peak.total()), step.most_passes, blocks_of(run, rank));
  }
  return text;
}

std::string fullest_memory_line(const Run& run) {
  const std::size_t rank = run.step()->fullest_rank();
  const RankStep& step = run.step()->ranks[rank];
  return fmt::format("memory: rank {} is the fullest, {:.1f} of {:.0f} GiB at {:.0f} ms: {}\n", rank,
                     gib(step.peak.total()), run.setup.machine.facts.memory_gib, in_ms(step.peak_at),
                     breakdown(step.peak));
}

// The GPUs of a node are taken to be on the rank of the pipeline that has most there.
std::string host_memory_line(const Run& run) {
  double most = 0;
  for (const RankStep& step : run.step()->ranks) most = std::max(most, step.host);
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

}  // namespace moeline

// The result as a person reads it: a step, a pipeline of slots, and what `schedule: auto` chose among.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text_table.hpp"
#include "experiments/cli/output/hardware_output.hpp"
#include "experiments/cli/output/memory_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/run/stack_choices.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "hardware/profile.hpp"

namespace moeline {

// What `schedule: auto` chose among, as a person reads it.

namespace {

std::vector<std::string> row_of(const TriedSchedule& tried, double best_ms, bool of_prefill) {
  if (!tried.ran()) {
    std::vector<std::string> cells = {tried.schedule, "", "", "", tried.refused};
    if (of_prefill) cells.insert(cells.begin() + 1, "");
    return cells;
  }
  const bool is_best = tried.time_ms() == best_ms;
  std::vector<std::string> cells = {tried.schedule, fmt::format("{:.3f}", tried.step_ms)};
  if (of_prefill) cells.push_back(fmt::format("{:.3f}", tried.time_ms()));
  cells.push_back(is_best ? "" : signed_percent(tried.time_ms() / best_ms - 1));
  cells.push_back(tried.memory_gib ? fmt::format("{:.1f}", *tried.memory_gib) : "");
  cells.emplace_back(tried.fits_memory ? "" : "does not fit memory");
  return cells;
}

}  // namespace

std::string tried_table(const Run& run) {
  const std::vector<TriedSchedule>& all = run.tried;
  const std::string& taken = run.setup.scenario.schedule;
  const auto best = std::find_if(all.begin(), all.end(), [&](const TriedSchedule& t) { return t.schedule == taken; });
  if (best == all.end()) return "";
  const bool of_prefill = best->ttft_ms.has_value();
  TextTable table(of_prefill ? "lrrrrl" : "lrrrl");
  std::vector<std::string> head = {"auto", "step, ms", "to the best", "GiB", ""};
  if (of_prefill) head.insert(head.begin() + 2, "TTFT, ms");
  table.row(std::move(head));
  for (const TriedSchedule& tried : all) table.row(row_of(tried, best->time_ms(), of_prefill));
  return table.text() + "\n";
}

// A whole pipeline as a person reads it.

namespace {

struct RankTotals {
  int slots = 0;
  Time busy{};
};

std::vector<RankTotals> totals_by_rank(const Run& run) {
  std::vector<RankTotals> ranks(static_cast<std::size_t>(run.setup.scenario.parallelism.pp));
  for (const PhaseTimes& slot : run.phases) {
    ++ranks[slot.rank].slots;
    ranks[slot.rank].busy += slot.busy;
  }
  return ranks;
}

std::string pipeline_head(const Scenario& s) {
  const SlotCosts& costs = *s.slot_costs;
  const std::string chunks = s.parallelism.virtual_pp > 1 ? fmt::format(" x {} chunks", s.parallelism.virtual_pp) : "";
  std::string text = fmt::format("{}: {} ranks{}, {} micro-batches; F {:g}, B {:g}", s.schedule, s.parallelism.pp,
                                 chunks, micro_batches(s), costs.f, costs.b);
  if (costs.w > 0) text += fmt::format(", W {:g}", costs.w);
  if (costs.f_and_b > 0) text += fmt::format(", F&B {:g}", costs.f_and_b);
  return text + " ms\n\n";
}

double to_ms(Time time) { return to_us(time) / 1e3; }

}  // namespace

std::string pipeline_table(const Run& run) {
  const Time step = run.metrics.span;
  std::string text = pipeline_head(run.setup.scenario);
  text += metric_table(run) + "\n";
  text += fmt::format("{:>6} {:>8} {:>17} {:>17}\n", "rank", "slots", "busy, ms", "bubble, ms");
  int rank = 0;
  for (const RankTotals& totals : totals_by_rank(run)) {
    text += fmt::format("{:>6} {:>8} {:>17.3f} {:>17.3f}\n", rank++, totals.slots, to_ms(totals.busy),
                        to_ms(step - totals.busy));
  }
  return text + fmt::format("\n{} tasks\n", run.program.graph.size());
}

// The result as a person reads it.

namespace {

// What a phase's span is counted over: each layer has it, or a step has it around its layers (embedding, LM head, what
// an MTP module adds).
enum class Per { layer, step };

Per per_of(const Run& run, const std::string& phase) {
  if (run.inference() == nullptr) return Per::layer;
  const std::vector<std::string> of_layer = run.setup.layer_phases();
  return std::find(of_layer.begin(), of_layer.end(), phase) != of_layer.end() ? Per::layer : Per::step;
}

// Spans of each phase, all micro-batches together: of a layer on average over the layers that have it, MoE layers where
// the model has others; of a step in all. In order of first appearance.
std::vector<std::pair<std::string, double>> spans(const Run& run, Per per) {
  std::vector<std::pair<std::string, double>> rows;
  std::map<std::string, double> sums;
  std::map<std::string, std::set<std::uint32_t>> layers;
  for (const PhaseTimes& phase : run.phases) {
    if (per_of(run, phase.phase) != per) continue;
    const int layer = static_cast<int>(phase.layer);
    if (layer < run.setup.first_main_layer() && per == Per::layer) continue;
    if (!sums.contains(phase.phase)) rows.emplace_back(phase.phase, 0);
    sums[phase.phase] += to_us(phase.span());
    layers[phase.phase].insert(phase.layer);
  }
  const double steps = run.inference() != nullptr ? run.inference()->steps_of_round : 1;
  for (auto& [name, us] : rows) {
    sums[name] /= steps;
    us = per == Per::layer ? sums[name] / static_cast<double>(layers[name].size()) : sums[name];
  }
  return rows;
}

std::string phase_table(const Run& run, const Run* baseline, Per per) {
  const auto rows = spans(run, per);
  if (rows.empty()) return "";
  std::map<std::string, double> beside;
  if (baseline != nullptr) {
    for (const auto& [phase, us] : spans(*baseline, per)) beside[phase] = us;
  }
  std::string text =
      fmt::format("{:<32} {:>17}", per == Per::layer ? "phase: span, us per layer" : "phase: span, us per step",
                  run.setup.scenario.schedule);
  if (baseline != nullptr) text += fmt::format(" {:>12} {:>9}", "sequential", "ratio");
  text += "\n";
  for (const auto& [phase, us] : rows) {
    text += fmt::format("{:<32} {:>17.1f}", phase, us);
    if (baseline != nullptr) text += fmt::format(" {:>12.1f} {:>9.2f}", beside[phase], us / beside[phase]);
    text += "\n";
  }
  return text + "\n";
}

std::string class_table(const Run& run) {
  std::string text = fmt::format("{:<32} {:>17} {:>12}\n", "class, us per layer", "busy", "solo");
  for (const ClassTimes& times : run.steady().metrics.classes) {
    text += fmt::format("{:<32} {:>17.1f} {:>12.1f}\n", times.name, to_us(times.busy) / run.steady().layers,
                        to_us(times.solo) / run.steady().layers);
  }
  return text;
}

// That have the same requests.
std::string per_gpus(const Scenario& s) {
  const Parallelism& p = s.parallelism;
  const int gpus = s.phase() == WorkloadPhase::train ? p.attention_ranks() : p.gpus_of_request();
  return gpus > 1 ? fmt::format("per {} GPUs", gpus) : "per GPU";
}

std::string describe(const TrainWorkload& w, const Scenario& s) {
  return fmt::format("{} tokens {}", w.micro_batch_size * w.seq_len, per_gpus(s));
}

std::string describe(const PrefillWorkload& w, const Scenario& s) {
  const std::string cached = w.cached_len > 0 ? fmt::format(", {} of them cached", w.cached_len) : "";
  const int steps = steps_per_prompt(w);
  const std::string of_steps = steps > 1 ? fmt::format(", {} of {} steps", is_staged(s) ? "mean" : "first", steps) : "";
  return fmt::format("{} tokens {}, prompts of {}{}{}", w.tokens, per_gpus(s), w.prompt_len, cached, of_steps);
}

std::string describe(const DecodeWorkload& w, const Scenario& s) {
  const std::string drafts = w.query_len > 1 ? fmt::format(", {} tokens per request and step", w.query_len) : "";
  return fmt::format("{} requests {}, KV {}{}", w.batch_size, per_gpus(s), w.kv_len, drafts);
}

std::string describe(const MixedWorkload& w, const Scenario& s) {
  return fmt::format("{} while {}", describe(w.decode, s), describe(w.prefill, s));
}

std::string work_of(const Scenario& s) {
  return std::visit([&](const auto& w) { return describe(w, s); }, s.workload);
}

// "kernels deepseek-2025-02", "kernels sglang-0.5.14 of 2026-08".
std::string dated(const KernelSet& set) {
  return "kernels " + set.name + (set.name.ends_with(set.date) ? "" : " of " + set.date);
}

std::string layers_head(const Scenario& s, const KernelSet& kernels) {
  const std::string sends = short_name(s.comm).empty() ? "" : ", " + short_name(s.comm);
  const std::string layers = s.whole_model ? "the whole model" : fmt::format("{} layers", s.layers);
  const std::string stages = is_staged(s) ? fmt::format(", PP{}", s.parallelism.pp) : "";
  return fmt::format("{}: {} on {} {} ({}), {}, {}, {}{}\n\n", s.schedule, s.model, s.parallelism.world(), s.hardware,
                     dated(kernels), short_name(s.parallelism) + stages, work_of(s), layers, sends);
}

// Families whose measurements are those of another kernel set.
std::string borrowed(const Run& run) {
  std::map<std::string, double> shares;
  for (const ProvenanceUse& use : run.program.provenance) {
    const bool own = use.kernel_set.empty() || use.kernel_set == run.setup.kernels().fitted_name();
    if (!own) shares[use.kernel_set] += share_of_solo(run, use.solo_us);
  }
  std::string text;
  for (const auto& [set, share] : shares) {
    text += fmt::format("{:.1f} % of the solo time priced with kernels borrowed from {}\n", 100 * share, set);
  }
  return text;
}

// What runs by the stack's habit, and which key overrules it.
std::string choice_lines(const Setup& setup) {
  std::string text;
  for (const StackChoice& choice : stack_choices(setup)) text += line_of(choice) + "\n";
  return text;
}

// How near the machine's kernel sets come to whole runs that were published of it.
std::string published(const Run& run) {
  const Scenario& s = run.setup.scenario;
  const auto profile = known_profile(s.hardware, {}, s.file);
  std::vector<std::string> sets;
  for (const KernelSet* set : profile->nearest_to_published()) sets.push_back(set->name + " " + published_text(*set));
  if (sets.empty()) return "";
  return fmt::format("published throughput of {}, the nearest kernel set first: {}\n", profile->name,
                     fmt::join(sets, "; "));
}

// How much of the time is no curve's alone.
std::string corrected(const Run& run) {
  double us = 0;
  for (const ProvenanceUse& use : run.program.provenance) us += use.corrected_us;
  return us > 0 ? fmt::format("{:.1f} % of the solo time priced by curves with a correction\n", 100 * us / solo_us(run))
                : "";
}

// Beside a trace of some GPU the slowest one's kernels look long, and its barriers short.
std::string slowest_gpu_line(const Setup& setup) {
  const double slower = setup.slowness(0) - 1;
  if (setup.every_rank || is_staged(setup.scenario) || slower < 1e-3) return "";
  return fmt::format(
      "of the group's {} GPUs this is the slowest, which waits least at barriers: where the SMs' clock sets the pace "
      "its kernels take {:.1f} % longer than the mean GPU's (ranks: all shows every one)\n",
      setup.scenario.parallelism.group(), 100 * slower);
}

std::string overheads(const Run& run) {
  std::string text;
  const Constant gap = kernel_gap_of(run.setup);
  const double gap_us = run.setup.kernels()[gap];
  if (run.program.gaps_us > 0) {  // else a warning says that they are unknown, or the scenario has none
    text += fmt::format("{:.0f} launch gaps of {:.1f} us", run.program.gaps_us / gap_us, gap_us);
    if (run.setup.scenario.launch == Launch::graph && gap != Constant::graph_gap)
      text += ", as measured in an eager stream; a CUDA graph's are shorter";
    text += "\n";
  }
  if (run.program.ranks > 1 && !is_staged(run.setup.scenario)) {
    text += fmt::format("{} ranks simulated; compute of rank 0 waits {:.0f} us for communication, barriers {:.0f} us\n",
                        run.program.ranks, compute_waits_us(run), barrier_us(run));
  }
  if (run.program.waits_us > 0) {
    text +=
        fmt::format("waits for the slowest rank: {:.0f} us expected in all, part of it hidden\n", run.program.waits_us);
  }
  return text + slowest_gpu_line(run.setup);
}

int decimals(const MetricBand& metric) {
  constexpr double kLarge = 10;
  return std::abs(metric.band.median) < kLarge ? 3 : 1;
}

std::string sample_table(const Samples& samples) {
  std::string text =
      fmt::format("\n{} samples, seeds in a row {:>27} {:>12} {:>12}\n", samples.count, "median", "5 %", "95 %");
  for (const MetricBand& metric : samples.metrics) {
    text += fmt::format("{:<37} {:>12.{}f} {:>12.{}f} {:>12.{}f}\n", metric.name, metric.band.median, decimals(metric),
                        metric.band.p5, decimals(metric), metric.band.p95, decimals(metric));
  }
  return text;
}

// Which stage the others wait for.
std::string stage_table(const Run& run) {
  if (run.inference() == nullptr || run.inference()->stages.empty()) return "";
  std::string text = fmt::format("{:>5}  {:<38} {:>12} {:>12}\n", "stage", "blocks", "busy, ms", "memory, GiB");
  int number = 0;
  for (const StageResult& stage : run.inference()->stages) {
    text += fmt::format("{:>5}  {:<38} {:>12.3f} {:>12.1f}\n", number++, stage.blocks, to_us(stage.busy) / 1e3,
                        gib(stage.memory.total()));
  }
  return text + "\n";
}

// What the clock costs, where power does not leave the highest.
std::string clock_line(const Run& run, const Run* burst) {
  if (burst == nullptr) return "";
  return fmt::format("clock: {:.0f} MHz on average under {:.0f} W; at {:.0f} MHz the step takes {:.3f} ms\n",
                     clock_mhz(run.setup), run.setup.machine.facts.power_cap_w, clock_mhz(burst->setup),
                     to_us(burst->metrics.span) / 1e3);
}

}  // namespace

std::string to_table(const Run& run, const Beside& beside) {
  std::string text = layers_head(run.setup.scenario, run.setup.kernels());
  text += metric_table(run, beside.baseline) + "\n" + phase_table(run, beside.baseline, Per::layer) +
          phase_table(run, beside.baseline, Per::step) + class_table(run) + "\n" + stage_table(run);
  text += memory_lines(run) + choice_lines(run.setup) + published(run) + borrowed(run) + corrected(run) +
          overheads(run) + clock_line(run, beside.burst);
  text += fmt::format("{} tasks; {} fitted constants; {:.1f} % of the solo time in kernels of a fixed cost\n",
                      run.program.graph.size(), run.program.constants.count(), 100 * lumped_share(run));
  return beside.samples == nullptr ? text : text + sample_table(*beside.samples);
}

}  // namespace moeline

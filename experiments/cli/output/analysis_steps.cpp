// The steps and layers of `moeline analyze` for people.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/cli/output/analysis_output.hpp"

namespace moeline {
namespace {

// As --from and --to count.
Time since_first(const AnalysisReport& r, Time start) {
  return start - std::chrono::nanoseconds(r.measured->trace.gpu_events.front().start_ns);
}

std::string list_of_steps(const AnalysisReport& r, const RankAnalysis& rank) {
  constexpr std::size_t kShown = 16;
  std::string text = fmt::format("{:>6} {:<48} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6}\n", "step", "name", "start us",
                                 "length us", "compute us", "exposed us", "idle us", "layers");
  for (std::size_t i = 0; i < std::min(kShown, rank.steps.size()); ++i) {
    const StepUse& s = rank.steps[i];
    text += fmt::format("{:>6} {:<48} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>6}\n", s.step.number,
                        short_phase_name(s.step.name), to_us(since_first(r, s.start)), to_us(s.times.span),
                        to_us(s.times.compute), to_us(s.times.exposed), to_us(s.times.idle), s.layers);
  }
  if (rank.steps.size() > kShown) text += fmt::format("... {} more\n", rank.steps.size() - kShown);
  std::vector<Interval> inside;
  for (const StepUse& s : rank.steps) inside.push_back({s.start, s.end});
  return text + fmt::format("{:.0f} us of the span lie in no step.\n\n",
                            to_us(rank.times.span - covered_by(std::move(inside))));
}

Time layer_length(const RankAnalysis& rank, std::size_t step) {
  Time sum{};
  for (const LayerWindow& w : rank.layers) {
    if (w.step == static_cast<std::int64_t>(step)) sum += w.end - w.start;
  }
  const auto layers = static_cast<std::int64_t>(rank.steps[step].layers);
  return layers > 0 ? sum / layers : Time::zero();
}

std::string list_of_kinds(const RankAnalysis& rank) {
  constexpr std::size_t kShown = 12;
  std::string text = fmt::format("{:>6} {:<48} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "steps", "of one kind",
                                 "median us", "min us", "max us", "layers", "layer us");
  for (std::size_t i = 0; i < std::min(kShown, rank.step_kinds.size()); ++i) {
    const StepKind& kind = rank.step_kinds[i];
    const auto length = [&](std::size_t step) { return rank.steps[step].times.span; };
    const auto [least, most] = std::minmax_element(kind.steps.begin(), kind.steps.end(),
                                                   [&](std::size_t a, std::size_t b) { return length(a) < length(b); });
    text += fmt::format("{:>6} {:<48} {:>10.0f} {:>10.0f} {:>10.0f} {:>10} {:>10.1f}\n", kind.steps.size(),
                        short_phase_name(kind.kind), to_us(length(kind.median)), to_us(length(*least)),
                        to_us(length(*most)), rank.steps[kind.median].layers, to_us(layer_length(rank, kind.median)));
  }
  if (rank.step_kinds.size() > kShown) text += fmt::format("... {} more\n", rank.step_kinds.size() - kShown);
  return text + "\n";
}

std::string rows_of_layers(const std::vector<LayerWindow>& layers, const char* heading) {
  constexpr std::size_t kShown = 16;
  std::string text = fmt::format("{:>5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", heading, "length us",
                                 "compute us", "comm us", "exposed us", "barrier us", "transfer us");
  for (std::size_t i = 0; i < std::min(kShown, layers.size()); ++i) {
    const LayerWindow& w = layers[i];
    text += fmt::format("{:>5} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", w.layer,
                        to_us(w.end - w.start), to_us(w.times.compute), to_us(w.times.communication),
                        to_us(w.times.exposed), to_us(w.barrier), to_us(w.transfer));
  }
  if (layers.size() > kShown) text += fmt::format("... {} more\n", layers.size() - kShown);
  return text + "\n";
}

// Of the kind of step that takes longest in all and has layers, those of its median.
std::string layers_in_steps(const RankAnalysis& rank) {
  const auto kind = std::find_if(rank.step_kinds.begin(), rank.step_kinds.end(),
                                 [&](const StepKind& k) { return rank.steps[k.median].layers > 0; });
  if (kind == rank.step_kinds.end()) return "";
  std::vector<LayerWindow> layers;
  std::copy_if(rank.layers.begin(), rank.layers.end(), std::back_inserter(layers),
               [&](const LayerWindow& w) { return w.step == static_cast<std::int64_t>(kind->median); });
  return fmt::format("layers of step {}, the median of {} {}, found by repetition:\n",
                     rank.steps[kind->median].step.number, kind->steps.size(), short_phase_name(kind->kind)) +
         rows_of_layers(layers, "layer");
}

}  // namespace

// One step of the profiler's around everything says nothing.
bool steps_matter(const RankAnalysis& rank) {
  return rank.steps.size() > 1 || (rank.steps.size() == 1 && rank.step_kinds.front().kind != "ProfilerStep");
}

std::string steps_table(const AnalysisReport& r, const RankAnalysis& rank) {
  return steps_matter(rank) ? list_of_steps(r, rank) + list_of_kinds(rank) : "";
}

std::string layers_table(const RankAnalysis& rank) {
  if (rank.layers.empty()) return "";
  if (rank.layers.front().step >= 0) return layers_in_steps(rank);
  return rows_of_layers(rank.layers, rank.layers_by_repetition ? "rep." : "layer");
}

}  // namespace moeline

#include "timeline/compared_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/error.hpp"
#include "trace/short_names.hpp"
#include "trace/step_windows.hpp"

namespace moeline {

// Steps as phases, so that two runs of one server can be laid beside each other.

namespace {

// From its start a phase has all events until the next part starts.
struct Part {
  std::int64_t start_ns = 0;
  TracePhase phase;
};

std::vector<Part> parts_of(const StepKind& kind, const StepWindow& step, bool divided) {
  if (!divided || step.layers.empty()) return {{step.time.start_ns, {kind.kind, step.gpu, {0, 0}}}};
  std::vector<Part> parts = {{step.time.start_ns, {"start of " + kind.kind, step.gpu, {0, 0}}}};
  for (const Stretch& layer : step.layers) {
    const auto position = static_cast<std::uint32_t>(parts.size() - 1);
    parts.push_back({layer.start_ns, {kind.kind, step.gpu, {position, 0}}});
  }
  parts.push_back({step.layers.back().end_ns, {"end of " + kind.kind, step.gpu, {0, 0}}});
  return parts;
}

std::size_t first_from(const Trace& trace, std::int64_t ns) {
  const auto first = std::partition_point(trace.gpu_events.begin(), trace.gpu_events.end(),
                                          [&](const GpuEvent& event) { return event.start_ns < ns; });
  return static_cast<std::size_t>(first - trace.gpu_events.begin());
}

/// The same events with other phases: of each kind of step its median, everything that starts while it runs. A kind of
/// `divided` has a phase per layer, named like the kind, in which the layer is its position, and two more for what
/// comes before its first layer and after its last; any other kind is one phase. `steps` and `kinds` are those of the
/// trace's first GPU.
Interpretation phases_of_steps(const Trace& trace, Interpretation meaning, const std::vector<StepWindow>& steps,
                               const std::vector<StepKind>& kinds, const std::set<std::string>& divided) {
  meaning.phases.clear();
  meaning.places.assign(trace.gpu_events.size(), {});
  for (const StepKind& kind : kinds) {
    const StepWindow& step = steps[kind.median];
    const std::vector<Part> parts = parts_of(kind, step, divided.contains(kind.kind));
    const auto first = static_cast<std::int32_t>(meaning.phases.size());
    for (const Part& part : parts) meaning.phases.push_back(part.phase);
    for (std::size_t i = first_from(trace, step.time.start_ns); i < trace.gpu_events.size(); ++i) {
      const GpuEvent& event = trace.gpu_events[i];
      if (event.start_ns >= step.time.end_ns) break;
      if (event.gpu != step.gpu) continue;
      const auto next = std::partition_point(parts.begin(), parts.end(),
                                             [&](const Part& part) { return part.start_ns <= event.start_ns; });
      meaning.places[i].phase = first + static_cast<std::int32_t>(next - parts.begin()) - 1;
    }
  }
  return meaning;
}

const StepKind* kind_named(const SteppedTrace& side, const std::string& name) {
  const auto found =
      std::find_if(side.kinds.begin(), side.kinds.end(), [&](const StepKind& kind) { return kind.kind == name; });
  return found == side.kinds.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const SteppedTrace& side) {
  std::vector<std::string> names;
  for (const StepKind& kind : side.kinds) names.push_back(kind.kind);
  return names;
}

std::vector<std::string> lacking(const SteppedTrace& side, const SteppedTrace& other) {
  std::vector<std::string> names = names_of(side);
  std::erase_if(names, [&](const std::string& name) { return kind_named(other, name) != nullptr; });
  return names;
}

}  // namespace

std::optional<SteppedTrace> stepped(Trace& trace, Interpretation& meaning) {
  if (trace.steps.empty() || holds_most(meaning)) return std::nullopt;
  // Whoever names a few phases inside the profiler's steps wants these.
  if (trace.steps.front().kind == "ProfilerStep" && !meaning.phases.empty()) return std::nullopt;
  std::vector<StepWindow> steps = step_windows(trace, meaning);
  std::vector<StepKind> kinds = step_kinds(trace, steps);
  return SteppedTrace{std::move(trace), std::move(meaning), std::move(steps), std::move(kinds)};
}

StepPairs pair_steps(const SteppedTrace& a, const SteppedTrace& b) {
  StepPairs pairs{{}, lacking(a, b), lacking(b, a)};
  for (const StepKind& of_b : b.kinds) {
    const StepKind* of_a = kind_named(a, of_b.kind);
    if (of_a == nullptr) continue;
    const StepWindow& median_a = a.steps[of_a->median];
    const StepWindow& median_b = b.steps[of_b.median];
    pairs.common.push_back(
        {of_b.kind, of_a->steps.size(), of_b.steps.size(), std::chrono::nanoseconds(median_a.time.length_ns()),
         std::chrono::nanoseconds(median_b.time.length_ns()), median_a.layers.size() == median_b.layers.size()});
  }
  if (!pairs.common.empty()) return pairs;
  throw SpecError(fmt::format("the two sides have no kind of step in common: a has {}; b has {}", some_of(names_of(a)),
                              some_of(names_of(b))));
}

Interpretation step_phases(const SteppedTrace& side, const std::set<std::string>& divided) {
  return phases_of_steps(side.trace, side.meaning, side.steps, side.kinds, divided);
}

}  // namespace moeline

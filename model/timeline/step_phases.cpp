#include "timeline/step_phases.hpp"

#include <algorithm>

namespace moeline {
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

}  // namespace

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

}  // namespace moeline

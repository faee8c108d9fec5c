// Two traces of the same work, compared. Times count from the first GPU event: who else is in a file is its own affair.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/support/measured.hpp"
#include "trace/step_windows.hpp"

namespace moeline::testing {

inline std::int64_t zero_of(const Trace& trace) { return trace.gpu_events.front().start_ns; }

/// When and where each kernel ran.
inline std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::string>> kernels_of(const Trace& trace) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::string>> kernels;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.kind != GpuEventKind::kernel) continue;
    kernels.emplace_back(event.start_ns - zero_of(trace), event.end_ns - event.start_ns, event.stream,
                         trace.name(event));
  }
  return kernels;
}

/// By kernel, for how long before it its launch was called; of one without a launch -1.
inline std::vector<std::int64_t> launches_of(const Trace& trace) {
  std::vector<std::int64_t> launches;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.kind != GpuEventKind::kernel) continue;
    launches.push_back(event.call < 0 ? -1 : event.start_ns - trace.launched_ns(event));
  }
  return launches;
}

/// By kernel, its phase and the phase's layer: "attn 3".
inline std::vector<std::string> phases_of(const Trace& trace) {
  const Interpretation meaning = interpret(trace);
  std::vector<std::string> phases;
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    if (trace.gpu_events[i].kind != GpuEventKind::kernel) continue;
    const std::int32_t phase = meaning.places[i].phase;
    if (phase == kNoPhase) {
      phases.emplace_back();
    } else {
      const TracePhase& named = meaning.phases[static_cast<std::size_t>(phase)];
      phases.push_back(named.name + " " + std::to_string(named.place.layer));
    }
  }
  return phases;
}

/// By kernel, the position of its step; -1: it is in none.
inline std::vector<std::int32_t> steps_of(const Trace& trace) {
  std::vector<std::int32_t> steps;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.kind == GpuEventKind::kernel) steps.push_back(event.step);
  }
  return steps;
}

/// By step, how many layers it has.
inline std::vector<std::size_t> layers_in_steps(const Trace& trace) {
  std::vector<std::size_t> layers;
  for (const StepWindow& window : step_windows(trace, interpret(trace))) layers.push_back(window.layers.size());
  return layers;
}

inline std::vector<std::string> kinds_of_steps(const Trace& trace) {
  std::vector<std::string> kinds;
  for (const TraceStep& step : trace.steps) kinds.push_back(step.kind);
  return kinds;
}

}  // namespace moeline::testing

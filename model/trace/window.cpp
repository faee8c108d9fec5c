#include "trace/window.hpp"

#include <algorithm>
#include <limits>

namespace moeline {
namespace {

using Renumbered = std::vector<std::int32_t>;  // by old index the new one; -1: left out

std::int32_t renumber(std::int64_t index, const Renumbered& numbers) {
  return index < 0 ? static_cast<std::int32_t>(index) : numbers[static_cast<std::size_t>(index)];
}

// Keeps the elements that `keeps` is true of.
template <class T, class Keeps>
Renumbered keep(std::vector<T>& elements, Keeps keeps) {
  Renumbered numbers;
  std::vector<T> kept;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const bool stays = keeps(elements[i], i);
    numbers.push_back(stays ? static_cast<std::int32_t>(kept.size()) : -1);
    if (stays) kept.push_back(std::move(elements[i]));
  }
  elements = std::move(kept);
  return numbers;
}

// From the first launch of the events left to their last.
void keep_calls(Trace& trace) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.call < 0) continue;
    first_ns = std::min(first_ns, trace.launched_ns(event));
    last_ns = std::max(last_ns, trace.launched_ns(event));
  }
  const Renumbered numbers = keep(trace.calls, [&](const HostCall& call, std::size_t) {
    return call.start_ns >= first_ns && call.start_ns <= last_ns;
  });
  for (HostCall& call : trace.calls) {
    const bool states_one = call.record >= 0;
    call.record = renumber(call.record, numbers);
    if (states_one && call.record < 0) call.record = kOutside;
  }
  for (GpuEvent& event : trace.gpu_events) event.call = renumber(event.call, numbers);
}

void keep_flows(Trace& trace, const Renumbered& events) {
  (void)keep(trace.flows,
             [&](const GpuFlow& flow, std::size_t) { return events[flow.from] >= 0 && events[flow.to] >= 0; });
  for (GpuFlow& flow : trace.flows) {
    flow.from = static_cast<std::uint32_t>(events[flow.from]);
    flow.to = static_cast<std::uint32_t>(events[flow.to]);
  }
}

void keep_steps(Trace& trace) {
  std::vector<bool> used(trace.steps.size(), false);
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.step >= 0) used[static_cast<std::size_t>(event.step)] = true;
  }
  const Renumbered numbers = keep(trace.steps, [&](const TraceStep&, std::size_t i) { return used[i]; });
  for (GpuEvent& event : trace.gpu_events) event.step = renumber(event.step, numbers);
}

}  // namespace

Trace within(Trace trace, const TimeWindow& window) {
  const Renumbered events = keep(trace.gpu_events, [&](const GpuEvent& event, std::size_t) {
    return event.start_ns >= window.from_ns && event.start_ns < window.to_ns;
  });
  trace.is_part = true;
  keep_flows(trace, events);
  keep_calls(trace);
  keep_steps(trace);
  return trace;
}

}  // namespace moeline

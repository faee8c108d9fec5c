#include "trace/step_windows.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "trace/repetitions.hpp"

namespace moeline {
namespace {

using Events = std::vector<std::uint32_t>;

// Events of one step on one stream.
struct OnStream {
  Events events;
  std::int64_t computed_ns = 0;
};
using Streams = std::map<std::uint32_t, OnStream>;

// By GPU and step.
using Steps = std::map<std::pair<std::uint16_t, std::int32_t>, Streams>;

Steps events_of_steps(const Trace& trace, const Interpretation& meaning) {
  Steps steps;
  for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    if (event.step < 0) continue;
    OnStream& stream = steps[{event.gpu, event.step}][event.stream];
    stream.events.push_back(i);
    const KernelClass c = meaning.classes[i];
    if (c != KernelClass::copy && !is_communication(c)) stream.computed_ns += event.end_ns - event.start_ns;
  }
  return steps;
}

const Events& on_main_stream(const Streams& streams) {
  return std::max_element(streams.begin(), streams.end(),
                          [](const auto& a, const auto& b) { return a.second.computed_ns < b.second.computed_ns; })
      ->second.events;
}

Stretch stretch_of(const Trace& trace, const Events& events) {
  Stretch stretch{trace.gpu_events[events.front()].start_ns, 0};
  for (const std::uint32_t i : events) stretch.end_ns = std::max(stretch.end_ns, trace.gpu_events[i].end_ns);
  return stretch;
}

}  // namespace

std::vector<Stretch> repeated_layers(const Trace& trace, const Interpretation& meaning, const Events& events) {
  std::vector<std::uint32_t> names;
  std::set<std::uint32_t> attention;
  for (const std::uint32_t i : events) {
    names.push_back(trace.gpu_events[i].name);
    if (meaning.classes[i] == KernelClass::attention) attention.insert(names.back());
  }
  const std::vector<Repetition> found = repetitions(names, attention);
  std::vector<Stretch> layers;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = found[i];
    const bool last = i + 1 == found.size();
    const bool next_follows = last ? end < events.size() : found[i + 1].begin == end;
    const std::int64_t end_ns =
        next_follows ? trace.gpu_events[events[end]].start_ns : trace.gpu_events[events[end - 1]].end_ns;
    layers.push_back({trace.gpu_events[events[begin]].start_ns, end_ns});
  }
  return layers;
}

std::vector<StepWindow> step_windows(const Trace& trace, const Interpretation& meaning) {
  const bool by_repetition = !holds_most(meaning);
  std::vector<StepWindow> windows;
  for (const auto& [key, streams] : events_of_steps(trace, meaning)) {
    const Events& events = on_main_stream(streams);
    windows.push_back({static_cast<std::uint32_t>(key.second), key.first, stretch_of(trace, events), {}});
    if (by_repetition) windows.back().layers = repeated_layers(trace, meaning, events);
  }
  std::stable_sort(windows.begin(), windows.end(), [](const StepWindow& a, const StepWindow& b) {
    return std::tie(a.gpu, a.time.start_ns) < std::tie(b.gpu, b.time.start_ns);
  });
  return windows;
}

std::vector<StepKind> step_kinds(const Trace& trace, const std::vector<StepWindow>& steps) {
  std::map<std::string, StepKind> by_kind;
  for (std::size_t i = 0; i < steps.size(); ++i) by_kind[trace.steps[steps[i].step].kind].steps.push_back(i);
  std::vector<std::pair<std::int64_t, StepKind>> kinds;  // with their time
  for (auto& [name, kind] : by_kind) {
    kind.kind = name;
    std::vector<std::size_t> by_length = kind.steps;
    std::stable_sort(by_length.begin(), by_length.end(), [&](std::size_t a, std::size_t b) {
      return steps[a].time.length_ns() < steps[b].time.length_ns();
    });
    kind.median = by_length[(by_length.size() - 1) / 2];
    std::int64_t sum_ns = 0;
    for (const std::size_t i : kind.steps) sum_ns += steps[i].time.length_ns();
    kinds.emplace_back(sum_ns, std::move(kind));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<StepKind> list;
  for (auto& [sum_ns, kind] : kinds) list.push_back(std::move(kind));
  return list;
}

}  // namespace moeline

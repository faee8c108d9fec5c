#include "timeline/step_windows.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "timeline/repetition.hpp"

namespace moeline {
namespace {

using Events = std::vector<std::uint32_t>;

std::size_t usual_length(const std::vector<std::size_t>& starts) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 1; i < starts.size(); ++i) lengths.push_back(starts[i] - starts[i - 1]);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

// By GPU: the stream whose kernels compute longest.
std::vector<std::uint32_t> main_streams(const Trace& trace, const Interpretation& meaning) {
  std::vector<std::map<std::uint32_t, std::int64_t>> computed_ns(trace.gpus.size());
  for (std::size_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    const KernelClass c = meaning.classes[i];
    if (c == KernelClass::copy || is_communication(c)) continue;
    computed_ns[event.gpu][event.stream] += event.end_ns - event.start_ns;
  }
  std::vector<std::uint32_t> streams;
  for (const auto& of_gpu : computed_ns) {
    const auto most = std::max_element(of_gpu.begin(), of_gpu.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    streams.push_back(most == of_gpu.end() ? 0 : most->first);
  }
  return streams;
}

Stretch stretch_of(const Trace& trace, const Events& events) {
  Stretch stretch{trace.gpu_events[events.front()].start_ns, 0};
  for (const std::uint32_t i : events) stretch.end_ns = std::max(stretch.end_ns, trace.gpu_events[i].end_ns);
  return stretch;
}

}  // namespace

std::vector<Stretch> repeated_layers(const Trace& trace, const Events& events) {
  std::vector<std::uint32_t> names;
  for (const std::uint32_t i : events) names.push_back(trace.gpu_events[i].name);
  const std::vector<std::size_t> starts = repetitions(names);
  if (starts.empty()) return {};
  const std::size_t usual = usual_length(starts);
  std::vector<Stretch> layers;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const bool too_long = 2 * (starts[i + 1] - starts[i]) > 3 * usual;
    const std::size_t end = too_long ? starts[i] + usual : starts[i + 1];
    const bool ends_here = too_long || end >= events.size();
    const std::int64_t end_ns =
        ends_here ? trace.gpu_events[events[end - 1]].end_ns : trace.gpu_events[events[end]].start_ns;
    layers.push_back({trace.gpu_events[events[starts[i]]].start_ns, end_ns});
  }
  return layers;
}

std::vector<StepWindow> step_windows(const Trace& trace, const Interpretation& meaning) {
  struct Held {
    Events on_main, all;
  };
  if (trace.steps.empty()) return {};
  const std::vector<std::uint32_t> main = main_streams(trace, meaning);
  std::map<std::pair<std::uint16_t, std::int32_t>, Held> steps;
  for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    if (event.step < 0) continue;
    Held& held = steps[{event.gpu, event.step}];
    held.all.push_back(i);
    if (event.stream == main[event.gpu]) held.on_main.push_back(i);
  }
  const bool by_repetition = !holds_most(meaning);
  std::vector<StepWindow> windows;
  for (const auto& [key, held] : steps) {
    const Stretch time = stretch_of(trace, held.on_main.empty() ? held.all : held.on_main);
    windows.push_back({static_cast<std::uint32_t>(key.second), key.first, time, {}});
    if (by_repetition) windows.back().layers = repeated_layers(trace, held.on_main);
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

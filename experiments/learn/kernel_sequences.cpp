#include "experiments/learn/kernel_sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "trace/step_windows.hpp"

namespace moeline {
namespace {

Time from_ns(std::int64_t ns) { return Time{ns * 1000}; }

// All of the trace, where it has no steps.
struct ChosenStep {
  std::string kind;
  std::size_t of_kind = 1;
  std::int32_t step = -1;
  Stretch time{};
};

ChosenStep choose_step(const Measured& measured) {
  const Trace& trace = measured.trace;
  const std::vector<StepWindow> windows = step_windows(trace, measured.meaning);
  if (windows.empty()) {
    ChosenStep all;
    all.time.start_ns = trace.gpu_events.front().start_ns;
    for (const GpuEvent& event : trace.gpu_events) all.time.end_ns = std::max(all.time.end_ns, event.end_ns);
    return all;
  }
  const std::vector<StepKind> kinds = step_kinds(trace, windows);
  const StepWindow& window = windows[kinds.front().median];
  return {kinds.front().kind, kinds.front().steps.size(), static_cast<std::int32_t>(window.step), window.time};
}

std::vector<std::uint32_t> events_of(const Trace& trace, const ChosenStep& chosen) {
  std::vector<std::uint32_t> events;
  for (std::uint32_t i = 0; i < trace.gpu_events.size(); ++i) {
    const GpuEvent& event = trace.gpu_events[i];
    const bool inside = chosen.step < 0 || event.step == chosen.step;
    if (inside) events.push_back(i);
  }
  return events;
}

// Calls that launched many kernels each.
std::set<std::int32_t> graph_launches(const Trace& trace, const std::vector<std::uint32_t>& events) {
  constexpr std::size_t kLeastOfGraph = 8;
  std::map<std::int32_t, std::size_t> kernels;
  for (const std::uint32_t i : events) {
    if (trace.gpu_events[i].call >= 0) ++kernels[trace.gpu_events[i].call];
  }
  std::set<std::int32_t> graphs;
  for (const auto& [call, count] : kernels) {
    if (count >= kLeastOfGraph) graphs.insert(call);
  }
  return graphs;
}

// Where graphs hold most of a step's kernels, the others are what the host does around them.
void keep_graphs(const Trace& trace, std::vector<std::uint32_t>& events, ObservedStep& step) {
  step.knows_launches =
      std::any_of(events.begin(), events.end(), [&](std::uint32_t i) { return trace.gpu_events[i].call >= 0; });
  const std::set<std::int32_t> graphs = graph_launches(trace, events);
  const auto is_around = [&](std::uint32_t i) { return !graphs.contains(trace.gpu_events[i].call); };
  const auto around = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), is_around));
  if (graphs.empty() || 2 * around > events.size()) return;
  step.in_graphs = true;
  step.around = around;
  std::erase_if(events, is_around);
}

// It waited for nothing as long as for its launch.
bool came_late(const Measured& measured, const Release& release, std::uint32_t event) {
  const std::int64_t binding = release.binding[event];
  return binding >= 0 && measured.dependencies[static_cast<std::size_t>(binding)].reason == Reason::launch;
}

// By event of the step: how long its stream stood still in front of it.
std::vector<std::int64_t> gaps_ns(const Trace& trace, const std::vector<std::uint32_t>& events) {
  std::map<std::uint32_t, std::int64_t> ends;  // by stream, of what ran before
  std::vector<std::int64_t> gaps;
  for (const std::uint32_t i : events) {
    const GpuEvent& event = trace.gpu_events[i];
    std::int64_t& end = ends.try_emplace(event.stream, event.start_ns).first->second;
    gaps.push_back(std::max<std::int64_t>(0, event.start_ns - end));
    end = std::max(end, event.end_ns);
  }
  return gaps;
}

// Longer than any gap that lies between two kernels that follow each other.
std::int64_t pause_ns(std::vector<std::int64_t> gaps) {
  constexpr std::int64_t kLeast = 2'000, kMost = 20'000;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::clamp(3 * *middle, kLeast, kMost);
}

void add_kernels(const Measured& measured, const std::vector<std::uint32_t>& events, ObservedStep& step) {
  const Trace& trace = measured.trace;
  const Release release = release_times(measured);
  const std::vector<std::int64_t> gaps = gaps_ns(trace, events);
  const std::int64_t pause = pause_ns(gaps);
  std::map<std::uint32_t, std::int64_t> ends;  // by stream, of what ran before
  std::int64_t first = trace.gpu_events[events.front()].start_ns, last = first;
  for (std::size_t k = 0; k < events.size(); ++k) {
    const GpuEvent& event = trace.gpu_events[events[k]];
    std::int64_t& end = ends.try_emplace(event.stream, event.start_ns).first->second;
    const std::int64_t added = std::max<std::int64_t>(0, event.end_ns - std::max(event.start_ns, end));
    const bool is_late = gaps[k] > pause || came_late(measured, release, events[k]);
    if (is_late && event.start_ns > last) step.paused += from_ns(event.start_ns - last);
    step.kernels.push_back({events[k], kinds_of_name(trace.name(event), measured.meaning.classes[events[k]]),
                            from_ns(added), from_ns(is_late ? 0 : gaps[k]), is_late});
    end = std::max(end, event.end_ns);
    last = std::max(last, event.end_ns);
  }
  step.start = from_ns(first);
  step.span = from_ns(last - first);
}

void add_annotations(const Trace& trace, const ChosenStep& chosen, const std::vector<std::uint32_t>& events,
                     ObservedStep& step) {
  std::int64_t from = chosen.time.start_ns, to = chosen.time.end_ns;
  for (const std::uint32_t i : events) from = std::min(from, trace.launched_ns(trace.gpu_events[i]));
  std::set<std::string> around;
  for (const Annotation& annotation : trace.annotations) {
    if (annotation.start_ns < to && annotation.end_ns > from) around.insert(annotation.name);
  }
  if (chosen.step >= 0) step.annotations.push_back(trace.steps[static_cast<std::size_t>(chosen.step)].name);
  for (const std::string& name : around) {
    if (step.annotations.empty() || name != step.annotations.front()) step.annotations.push_back(name);
  }
}

Time host_of(const Measured& measured, const std::vector<std::uint32_t>& events) {
  std::set<std::uint32_t> launches;
  for (const std::uint32_t i : events) {
    const std::int32_t call = measured.trace.gpu_events[i].call;
    if (call >= 0) launches.insert(static_cast<std::uint32_t>(call));
  }
  std::int64_t ns = 0;
  for (const Dependency& edge : measured.dependencies) {
    const bool between = edge.after.is_call && edge.before.is_call && edge.reason == Reason::host_order;
    if (between && launches.contains(edge.after.index)) ns += edge.host_ns;
  }
  return from_ns(ns);
}

}  // namespace

ObservedStep observed_step(const Measured& measured, const std::string& file) {
  const Trace& trace = measured.trace;
  if (trace.gpus.size() > 1) {
    throw SpecError(file, 0, fmt::format("holds {} GPUs; one at a time is learnt from", trace.gpus.size()));
  }
  const ChosenStep chosen = choose_step(measured);
  std::vector<std::uint32_t> events = events_of(trace, chosen);
  ObservedStep step;
  step.kind = chosen.kind;
  step.of_kind = chosen.of_kind;
  add_annotations(trace, chosen, events, step);
  keep_graphs(trace, events, step);
  add_kernels(measured, events, step);
  step.host = host_of(measured, events);
  return step;
}

std::vector<SimulatedKernel> simulated_kernels(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  std::vector<TaskId> tasks;
  for (TaskId id = 0; id < run.program.executions.size(); ++id) {
    const bool runs = run.program.executions[id].kernel != Execution::kNone;
    if (runs && graph.streams()[graph.label(id).stream].rank == 0) tasks.push_back(id);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [&](TaskId a, TaskId b) { return run.timeline.spans[a].start < run.timeline.spans[b].start; });
  std::vector<SimulatedKernel> kernels;
  for (const TaskId id : tasks) {
    const std::uint32_t kernel = run.program.executions[id].kernel;
    kernels.push_back({kernel, graph.phases()[graph.label(id).phase].layer, kind_of(run.program.kernels[kernel].op),
                       run.timeline.spans[id].end - run.timeline.spans[id].start, graph.task(id).delay,
                       run.timeline.spans[id].end});
  }
  return kernels;
}

}  // namespace moeline

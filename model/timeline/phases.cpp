#include "timeline/phases.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

enum class Kind { other, barrier, transfer };

// Collects the kernels of one phase.
struct Collected {
  PhaseTimes times;
  std::vector<Interval> kernels;

  void add(Time start, Time end, Time solo, std::uint32_t stream, Kind kind) {
    if (kernels.empty() || start < times.start) {
      times.start = start;
      times.stream = stream;
    }
    times.end = std::max(times.end, end);
    times.solo += solo;
    if (kind == Kind::barrier) times.barrier += end - start;
    if (kind == Kind::transfer) times.transfer += end - start;
    kernels.push_back({start, end});
  }
};

std::vector<PhaseTimes> finish(std::vector<Collected>& collected) {
  std::vector<PhaseTimes> table;
  for (Collected& phase : collected) {
    if (phase.kernels.empty()) continue;
    phase.times.busy = total(unite(std::move(phase.kernels)));
    table.push_back(phase.times);
  }
  std::stable_sort(table.begin(), table.end(), [](const PhaseTimes& a, const PhaseTimes& b) {
    return a.start != b.start ? a.start < b.start : a.stream < b.stream;
  });
  return table;
}

// The transfer kernels of DeepEP and of its ancestor: "internode::dispatch", "intranode::combine", "internode_ll::…".
Kind kind_of(const std::string& kernel) {
  if (kernel.find("notify") != std::string::npos) return Kind::barrier;
  const auto has = [&](const char* part) { return kernel.find(part) != std::string::npos; };
  const bool transfer =
      has("node::dispatch") || has("node::combine") || has("node_ll::dispatch") || has("node_ll::combine");
  return transfer ? Kind::transfer : Kind::other;
}

Kind kind_of(const TaskClass& task_class) {
  if (task_class.role != Role::communication) return Kind::other;
  return task_class.name == "barrier" ? Kind::barrier : Kind::transfer;
}

// What each annotation says of itself, else its position among those of its name, overlapping ones counted once.
std::vector<PhasePlace> places_of(const std::vector<Annotation>& annotations) {
  struct Seen {
    std::uint32_t count = 0;
    std::int64_t end_ns = 0;
  };
  std::map<std::string, Seen> seen;
  std::vector<PhasePlace> places;
  for (const Annotation& annotation : annotations) {
    if (annotation.place) {
      places.push_back(*annotation.place);
      continue;
    }
    Seen& last = seen[annotation.name];
    const bool same = last.count > 0 && annotation.start_ns < last.end_ns;
    if (!same) ++last.count;
    last.end_ns = same ? std::max(last.end_ns, annotation.end_ns) : annotation.end_ns;
    places.push_back({last.count - 1, 0});
  }
  return places;
}

}  // namespace

std::vector<PhaseTimes> phase_times(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<Collected> collected(graph.phases().size());
  for (std::size_t i = 0; i < collected.size(); ++i) {
    const Phase& phase = graph.phases()[i];
    collected[i].times.phase = phase.name;
    collected[i].times.rank = phase.rank;
    collected[i].times.micro_batch = phase.micro_batch;
    collected[i].times.layer = phase.layer;
  }
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    const TaskClass& task_class = graph.classes()[label.task_class];
    if (task_class.role == Role::host) continue;
    const Span& span = timeline.spans[task];
    collected[label.phase].add(span.start, span.end, graph.task(task).solo, graph.streams()[label.stream].id,
                               kind_of(task_class));
  }
  return finish(collected);
}

std::vector<PhaseTimes> phase_times(const Trace& trace) {
  const std::vector<PhasePlace> places = places_of(trace.annotations);
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, Collected> phases;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.annotation < 0) continue;
    const auto annotation = static_cast<std::size_t>(event.annotation);
    const std::string& name = trace.annotations[annotation].name;
    const PhasePlace& place = places[annotation];
    Collected& phase = phases[{name, place.layer, place.micro_batch}];
    phase.times.phase = name;
    phase.times.rank = trace.rank(event);
    phase.times.micro_batch = place.micro_batch;
    phase.times.layer = place.layer;
    phase.add(std::chrono::nanoseconds(event.start_ns), std::chrono::nanoseconds(event.end_ns), Time::zero(),
              event.stream, kind_of(trace.name(event)));
  }
  if (phases.empty()) throw SpecError("the trace has no kernel inside an annotation: its phases are unknown");
  std::vector<Collected> collected;
  for (auto& [key, phase] : phases) collected.push_back(std::move(phase));
  return finish(collected);
}

}  // namespace moeline

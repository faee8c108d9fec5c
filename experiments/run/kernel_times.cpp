#include "experiments/run/kernel_times.hpp"

#include <algorithm>
#include <map>

namespace moeline {
namespace {

bool matches(const TaskGraph& graph, TaskId id, const KernelSelection& kernels) {
  const Phase& phase = graph.phases()[graph.label(id).phase];
  const auto is = [](const std::string& wanted, const std::string& name) { return wanted.empty() || wanted == name; };
  const bool layer = kernels.layers.empty() || std::find(kernels.layers.begin(), kernels.layers.end(),
                                                         static_cast<int>(phase.layer)) != kernels.layers.end();
  return phase.rank == 0 && layer && is(kernels.name, graph.task_name(id)) &&
         is(kernels.task_class, graph.task_class(id).name) && is(kernels.phase, phase.name);
}

// A kernel of that class on another stream runs from before its start until after its end.
bool runs_beside(const Run& run, TaskId id, const std::vector<TaskId>& others) {
  const TaskGraph& graph = run.program.graph;
  const Span& inner = run.timeline.spans[id];
  return std::any_of(others.begin(), others.end(), [&](TaskId other) {
    const Span& outer = run.timeline.spans[other];
    return graph.label(other).stream != graph.label(id).stream && outer.start <= inner.start && inner.end <= outer.end;
  });
}

}  // namespace

std::vector<TaskId> select(const Run& run, const KernelSelection& kernels) {
  const TaskGraph& graph = run.program.graph;
  std::vector<TaskId> others;
  if (!kernels.beside.empty()) others = select(run, {.task_class = kernels.beside});
  std::vector<TaskId> selected;
  for (TaskId id = 0; id < graph.size(); ++id) {
    if (!matches(graph, id, kernels)) continue;
    if (kernels.beside.empty() || runs_beside(run, id, others)) selected.push_back(id);
  }
  return selected;
}

double median_slowdown(const Run& run, const std::vector<TaskId>& tasks) {
  std::vector<double> slowdowns;
  for (const TaskId id : tasks) {
    const Span& span = run.timeline.spans[id];
    slowdowns.push_back(to_us(span.end - span.start) / to_us(run.program.graph.task(id).solo));
  }
  std::sort(slowdowns.begin(), slowdowns.end());
  const std::size_t half = slowdowns.size() / 2;
  return slowdowns.size() % 2 == 1 ? slowdowns[half] : (slowdowns[half - 1] + slowdowns[half]) / 2;
}

double span_us(const Run& run, const std::vector<TaskId>& tasks) {
  Time first = run.timeline.spans[tasks.front()].start;
  Time last{};
  for (const TaskId id : tasks) {
    first = std::min(first, run.timeline.spans[id].start);
    last = std::max(last, run.timeline.spans[id].end);
  }
  return to_us(last - first);
}

double longest_stream_us(const Run& run, const std::vector<TaskId>& tasks) {
  std::map<std::uint16_t, Time> sums;
  Time longest{};
  for (const TaskId id : tasks) {
    Time& sum = sums[run.program.graph.label(id).stream];
    sum += run.program.graph.task(id).solo;
    longest = std::max(longest, sum);
  }
  return to_us(longest);
}

}  // namespace moeline

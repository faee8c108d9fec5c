#include "timeline/metrics.hpp"

#include <algorithm>
#include <set>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

// Kernels of one rank whose class is selected.
template <class Selected>
std::vector<Interval> busy(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank, Selected selected) {
  std::vector<Interval> intervals;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Label& label = graph.label(task);
    if (graph.streams()[label.stream].rank != rank || !selected(graph.classes()[label.task_class])) continue;
    intervals.push_back({timeline.spans[task].start, timeline.spans[task].end});
  }
  return unite(std::move(intervals));
}

void add_rank(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank, Metrics& sum) {
  const auto with_role = [&](Role role) {
    return busy(graph, timeline, rank, [role](const TaskClass& c) { return c.role == role; });
  };
  const std::vector<Interval> compute = with_role(Role::compute);
  const std::vector<Interval> comm = with_role(Role::communication);
  std::vector<Interval> any = compute;
  any.insert(any.end(), comm.begin(), comm.end());
  any = unite(std::move(any));
  const Time span = any.empty() ? Time::zero() : any.back().end - any.front().start;
  sum.span += span;
  sum.compute_busy += total(compute);
  sum.comm_busy += total(comm);
  sum.exposed_comm += total(comm) - overlap(comm, compute);
  sum.idle += span - total(any);
  for (ClassTimes& times : sum.classes) {
    times.busy += total(busy(graph, timeline, rank, [&](const TaskClass& c) { return c.name == times.name; }));
  }
}

double ratio(Time part, Time whole) {
  return whole > Time::zero() ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

}  // namespace

double Metrics::overlap_fraction() const { return ratio(comm_busy - exposed_comm, comm_busy); }
double Metrics::bubble_fraction() const { return ratio(idle, span); }

Metrics measure(const TaskGraph& graph, const Timeline& timeline) {
  Metrics metrics;
  for (const TaskClass& task_class : graph.classes()) {
    if (task_class.role != Role::host) metrics.classes.push_back({task_class.name, {}, {}});
  }
  std::sort(metrics.classes.begin(), metrics.classes.end(),
            [](const ClassTimes& a, const ClassTimes& b) { return a.name < b.name; });
  std::set<std::uint32_t> ranks;
  for (const Stream& stream : graph.streams()) ranks.insert(stream.rank);
  for (const std::uint32_t rank : ranks) add_rank(graph, timeline, rank, metrics);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const std::string& name = graph.classes()[graph.label(task).task_class].name;
    for (ClassTimes& times : metrics.classes) {
      if (times.name == name) times.solo += graph.task(task).solo;
    }
  }
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, ranks.size()));
  for (Time* time : {&metrics.span, &metrics.compute_busy, &metrics.comm_busy, &metrics.exposed_comm, &metrics.idle}) {
    *time /= count;
  }
  for (ClassTimes& times : metrics.classes) {
    times.busy /= count;
    times.solo /= count;
  }
  return metrics;
}

}  // namespace moeline

#include "experiments/timeline_page/task_lanes.hpp"

#include <algorithm>
#include <tuple>

namespace moeline {

std::uint32_t rank_of(const TaskGraph& graph, TaskId task) { return graph.streams()[graph.label(task).stream].rank; }

bool is_visible(const TaskGraph& graph, const Timeline& timeline, TaskId task) {
  const Span& span = timeline.spans[task];
  return graph.task_class(task).role != Role::host || span.end > span.start;
}

std::vector<TaskId> visible_tasks(const TaskGraph& graph, const Timeline& timeline,
                                  const std::set<std::uint32_t>& ranks, Time from) {
  const std::vector<Span>& spans = timeline.spans;
  std::vector<TaskId> tasks;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const bool wanted = spans[task].start >= from && ranks.contains(rank_of(graph, task));
    if (wanted && is_visible(graph, timeline, task)) tasks.push_back(task);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return spans[a].start < spans[b].start; });
  return tasks;
}

std::map<std::uint16_t, std::uint32_t> add_lanes(const TaskGraph& graph, const std::vector<TaskId>& tasks,
                                                 TimelineView& view) {
  std::set<std::uint16_t> used;
  for (const TaskId task : tasks) used.insert(graph.label(task).stream);
  std::vector<std::uint16_t> streams(used.begin(), used.end());
  const auto place = [&](std::uint16_t stream) {
    const Stream& s = graph.streams()[stream];
    return std::tuple(s.rank, s.role == Role::host, s.id);
  };
  std::stable_sort(streams.begin(), streams.end(), [&](auto a, auto b) { return place(a) < place(b); });
  std::map<std::uint16_t, std::uint32_t> lanes;
  for (const std::uint16_t stream : streams) {
    const Stream& s = graph.streams()[stream];
    lanes[stream] = static_cast<std::uint32_t>(view.lanes.size());
    view.lanes.push_back({s.rank, s.role == Role::host ? "host, other ranks" : s.name});
  }
  return lanes;
}

}  // namespace moeline

#include "timeline/trace_tasks.hpp"

#include <algorithm>
#include <tuple>

namespace moeline {
namespace {

class Finder {
 public:
  Finder(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank)
      : graph_(graph), timeline_(timeline), rank_(rank) {}

  [[nodiscard]] TraceTasks of_rank() const {
    TraceTasks tasks;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (stream_of(task).rank != rank_) continue;
      (role_of(task) == Role::host ? tasks.host : tasks.kernels).push_back(task);
    }
    const auto by_start = [&](TaskId a, TaskId b) {
      const auto key = [&](TaskId t) {
        return std::tuple(stream_of(t).id, timeline_.spans[t].start, timeline_.spans[t].end, t);
      };
      return key(a) < key(b);
    };
    std::sort(tasks.kernels.begin(), tasks.kernels.end(), by_start);
    std::sort(tasks.host.begin(), tasks.host.end(), by_start);
    return tasks;
  }

  // Of the host tasks with "launch" in their name that release a kernel, the last to end launches it.
  void find_launchers(TraceTasks& tasks) const {
    for (const TaskId task : tasks.host) {
      const Span& span = timeline_.spans[task];
      if (graph_.task_name(task).find("launch") == std::string::npos || span.start == span.end) continue;
      for (const EventId after : graph_.successors(end_of(task))) {
        if (!is_start(after) || !is_kernel(task_of(after))) continue;
        const auto [launcher, added] = tasks.launcher.try_emplace(task_of(after), task);
        if (timeline_.spans[launcher->second].end < span.end) launcher->second = task;
      }
    }
  }

  // The kernel whose end each host task waits for, the last to end.
  void find_waits(TraceTasks& tasks) const {
    for (const TaskId kernel : tasks.kernels) {
      for (const EventId after : graph_.successors(end_of(kernel))) {
        const TaskId task = task_of(after);
        if (!is_start(after) || stream_of(task).rank != rank_ || role_of(task) != Role::host) continue;
        const auto [waited_for, added] = tasks.waited_for.try_emplace(task, kernel);
        if (timeline_.spans[waited_for->second].end < timeline_.spans[kernel].end) waited_for->second = kernel;
      }
    }
  }

  // Data on the wire follows a kernel of its own phase that sends it, and has its correlation.
  void find_wires(TraceTasks& tasks) const {
    for (const TaskId sender : tasks.kernels) {
      if (graph_.task(sender).hold == Hold::nothing) continue;
      for (const EventId after : graph_.successors(end_of(sender))) {
        const TaskId task = task_of(after);
        const bool holds_nothing = graph_.task(task).hold == Hold::nothing;
        if (!is_kernel(task) || !holds_nothing || graph_.label(task).phase != graph_.label(sender).phase) continue;
        tasks.wires.insert(task);
        tasks.correlation[task] = tasks.correlation[sender];
      }
    }
  }

 private:
  [[nodiscard]] const Stream& stream_of(TaskId task) const { return graph_.streams()[graph_.label(task).stream]; }
  [[nodiscard]] Role role_of(TaskId task) const { return graph_.task_class(task).role; }
  [[nodiscard]] bool is_kernel(TaskId task) const {
    return stream_of(task).rank == rank_ && role_of(task) != Role::host;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::uint32_t rank_;
};

}  // namespace

TraceTasks trace_tasks(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank, bool graph_launch) {
  const Finder finder(graph, timeline, rank);
  TraceTasks tasks = finder.of_rank();
  if (!graph_launch) {
    finder.find_launchers(tasks);
    finder.find_waits(tasks);
  }
  for (std::size_t i = 0; i < tasks.kernels.size(); ++i) tasks.correlation[tasks.kernels[i]] = graph_launch ? 1 : i + 1;
  finder.find_wires(tasks);
  return tasks;
}

}  // namespace moeline

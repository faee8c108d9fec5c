#include "timeline/slack.hpp"

#include <algorithm>

namespace moeline {

std::vector<Time> slack(const TaskGraph& graph, const Timeline& timeline, const History& history) {
  std::vector<Time> latest(2 * graph.size(), timeline.makespan);  // by event
  std::vector<Time> own(graph.size());                            // by task: from its start until its work was done
  const auto no_later_than_successors = [&](EventId event) {
    for (const EventId after : graph.successors(event)) {
      const TaskId task = task_of(after);
      const bool own_end = is_start(event) && after == end_of(task_of(event));
      const Time since = own_end ? own[task] : is_start(after) ? graph.task(task).delay : Time::zero();
      latest[event] = std::min(latest[event], latest[after] - since);
    }
  };
  for (Position at = history.size(); at-- > 0;) {
    const TaskId task = history.change(at).task;
    const History::Entry& entry = history[at];
    if (entry.kind == History::Kind::done) own[task] = history.change(at).at - timeline.spans[task].start;
    if (entry.kind == History::Kind::end) no_later_than_successors(end_of(task));
    if (entry.kind != History::Kind::start) continue;
    no_later_than_successors(start_of(task));
    const Span& span = timeline.spans[task];
    if (span.start == span.ready || entry.cause == kNowhere) continue;
    Time& freed = latest[end_of(history.change(entry.cause).task)];
    freed = std::min(freed, latest[start_of(task)]);
  }
  std::vector<Time> slack(graph.size());
  for (TaskId id = 0; id < graph.size(); ++id) slack[id] = latest[end_of(id)] - timeline.spans[id].end;
  return slack;
}

}  // namespace moeline

#include "timeline/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "timeline/releases.hpp"

namespace moeline {
namespace {

class PathFinder {
 public:
  PathFinder(const TaskGraph& graph, const Timeline& timeline, const std::vector<bool>& stand_ins)
      : graph_(graph), timeline_(timeline), stand_ins_(stand_ins), releases_(graph, timeline) {}

  std::vector<PathStep> find() && {
    EventId event = last_event(timeline_);
    while (event != kNoEvent) event = is_start(event) ? before_start(task_of(event)) : before_end(task_of(event));
    std::reverse(steps_.begin(), steps_.end());
    return std::move(steps_);
  }

 private:
  void add(TaskId task, PathReason reason, Time start, Time end) {
    if (end > start) steps_.push_back({task, reason, start, end});
  }

  // The own work of an end that another held up no longer matters.
  EventId before_end(TaskId task) {
    const Span& span = timeline_.spans[task];
    const EventId held_up_by = releases_.of_end(task);
    if (held_up_by != kNoEvent) return held_up_by;
    const bool stands_in = !stand_ins_.empty() && stand_ins_[task];
    const Time alone = std::min(graph_.task(task).solo, span.end - span.start);
    add(task, PathReason::slowed, span.start + alone, span.end);
    add(task, stands_in ? PathReason::stragglers : PathReason::running, span.start, span.start + alone);
    return start_of(task);
  }

  EventId before_start(TaskId task) {
    const Span& span = timeline_.spans[task];
    const Time released = releases_.released(task);
    add(task, PathReason::sms, span.ready, span.start);
    add(task, PathReason::launch, released, span.ready);
    return releases_.of_start(task);
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const std::vector<bool>& stand_ins_;
  Releases releases_;
  std::vector<PathStep> steps_;  // backwards
};

}  // namespace

const std::string& name_of(PathReason reason) {
  static const std::array<std::string, kPathReasons> kNames = {"running", "slowed by neighbours", "waiting for SMs",
                                                               "launch", "waiting for the slowest rank"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline,
                                    const std::vector<bool>& stand_ins) {
  return PathFinder(graph, timeline, stand_ins).find();
}

const std::string& phase_of(const PathStep& step, const TaskGraph& graph) {
  static const std::string kNone;
  return graph.phases().empty() ? kNone : graph.phases()[graph.label(step.task).phase].name;
}

std::vector<Blame> blame(const TaskGraph& graph, const std::vector<PathStep>& path) {
  std::map<std::tuple<std::string, std::string, PathReason>, Time> times;
  for (const PathStep& step : path) {
    times[{graph.classes().empty() ? "" : graph.task_class(step.task).name, phase_of(step, graph), step.reason}] +=
        step.end - step.start;
  }
  std::vector<Blame> list;
  for (const auto& [what, time] : times)
    list.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), time});
  std::stable_sort(list.begin(), list.end(), [](const Blame& a, const Blame& b) { return a.time > b.time; });
  return list;
}

}  // namespace moeline

#include "timeline/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "timeline/history.hpp"

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

// The last part has what rounding leaves.
void split(const PathStep& step, const std::map<ResourceId, double>& lost, std::vector<PathStep>& parts) {
  double sum = 0;
  for (const auto& [resource, ps] : lost) sum += ps;
  PathStep part = step;
  for (const auto& [resource, ps] : lost) {
    const bool last = resource == lost.rbegin()->first;
    part.by = resource;
    part.end = last ? step.end
                    : part.start + std::min(step.end - part.start, from_us(to_us(step.end - step.start) * ps / sum));
    if (part.end > part.start) parts.push_back(part);
    part.start = part.end;
  }
  if (lost.empty()) parts.push_back(step);
}

}  // namespace

const std::string& name_of(PathReason reason) {
  static const std::array<std::string, kPathReasons> kNames = {
      "running", "slowed by neighbours", "waiting for SMs", "launch", "waiting for the slowest rank", "unexplained"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline,
                                    const std::vector<bool>& stand_ins) {
  return PathFinder(graph, timeline, stand_ins).find();
}

void mark_unexplained(const TaskGraph& graph, Time least, std::vector<PathStep>& path) {
  for (PathStep& step : path) {
    const bool delayed = step.reason == PathReason::launch && graph.task_class(step.task).role != Role::host;
    if (delayed && step.end - step.start >= least) step.reason = PathReason::unexplained;
  }
}

const std::string& phase_of(const PathStep& step, const TaskGraph& graph) {
  static const std::string kNone;
  return graph.phases().empty() ? kNone : graph.phases()[graph.label(step.task).phase].name;
}

std::vector<std::uint32_t> phase_names(const TaskGraph& graph) {
  std::unordered_map<std::string, std::uint32_t> numbers;  // looked up only, never iterated
  std::vector<std::uint32_t> names;
  names.reserve(graph.phases().size());
  for (const Phase& phase : graph.phases()) {
    names.push_back(numbers.try_emplace(phase.name, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return names;
}

std::vector<PathStep> by_resource(const std::vector<PathStep>& path, const Timeline& timeline) {
  std::map<TaskId, std::map<ResourceId, double>> lost;  // ps at full speed
  for (const PathStep& step : path) {
    if (step.reason == PathReason::slowed) lost[step.task];
  }
  std::map<TaskId, Change> last;
  for (const Change& change : timeline.changes) {
    const auto of_task = lost.find(change.task);
    if (of_task == lost.end()) continue;
    Change& before = last.try_emplace(change.task, change).first->second;
    if (before.speed > 0 || before.at >= timeline.spans[change.task].start) {  // or stalls: not while it waits to start
      of_task->second[before.limit] += (1 - before.speed) * static_cast<double>((change.at - before.at).count());
    }
    before = change;
  }
  std::vector<PathStep> parts;
  for (const PathStep& step : path) {
    if (step.reason == PathReason::slowed) {
      split(step, lost[step.task], parts);
    } else {
      parts.push_back(step);
    }
  }
  return parts;
}

std::vector<Blame> blame(const TaskGraph& graph, const std::vector<PathStep>& path) {
  using Key = std::tuple<std::string, std::string, PathReason, std::string>;
  std::map<Key, Blame> blames;
  for (const PathStep& step : path) {
    const std::string task_class = graph.classes().empty() ? "" : graph.task_class(step.task).name;
    const std::string by = step.by == kNoPool ? "" : graph.resources()[step.by].name;
    const Blame of_step{task_class, phase_of(step, graph), step.reason, by};
    blames.try_emplace({task_class, of_step.phase, step.reason, by}, of_step).first->second.time +=
        step.end - step.start;
  }
  std::vector<Blame> list;
  for (const auto& [key, blame] : blames) list.push_back(blame);
  std::stable_sort(list.begin(), list.end(), [](const Blame& a, const Blame& b) { return a.time > b.time; });
  return list;
}

}  // namespace moeline

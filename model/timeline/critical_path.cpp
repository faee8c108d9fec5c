#include "timeline/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace moeline {
namespace {

// The events that each event waits for: the graph has them the other way round.
class Predecessors {
 public:
  explicit Predecessors(const TaskGraph& graph) : begin_(2 * graph.size() + 1) {
    const auto events = static_cast<EventId>(2 * graph.size());
    for (EventId event = 0; event < events; ++event) {
      for (const EventId after : graph.successors(event)) ++begin_[after + 1];
    }
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    before_.resize(begin_.back());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (EventId event = 0; event < events; ++event) {
      for (const EventId after : graph.successors(event)) before_[next[after]++] = event;
    }
  }
  [[nodiscard]] std::span<const EventId> of(EventId event) const {
    return {before_.data() + begin_[event], before_.data() + begin_[event + 1]};
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<EventId> before_;
};

constexpr EventId kNoEvent = ~EventId{0};

class PathFinder {
 public:
  PathFinder(const TaskGraph& graph, const Timeline& timeline, const std::vector<bool>& stand_ins)
      : graph_(graph), spans_(timeline.spans), stand_ins_(stand_ins), before_(graph) {}

  std::vector<PathStep> find() && {
    EventId event = last_event();
    while (event != kNoEvent) event = is_start(event) ? before_start(task_of(event)) : before_end(task_of(event));
    std::reverse(steps_.begin(), steps_.end());
    return std::move(steps_);
  }

 private:
  [[nodiscard]] Time at(EventId event) const {
    const Span& span = spans_[task_of(event)];
    return is_start(event) ? span.start : span.end;
  }

  [[nodiscard]] EventId last_event() const {
    EventId last = kNoEvent;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (last == kNoEvent || spans_[task].end > at(last)) last = end_of(task);
    }
    return last;
  }

  // Of the events that `event` waits for the first, by id, that happened at that instant.
  [[nodiscard]] EventId one_at(EventId event, Time instant, EventId but = kNoEvent) const {
    for (const EventId before : before_.of(event)) {
      if (before != but && at(before) == instant) return before;
    }
    return kNoEvent;
  }

  void add(TaskId task, PathReason reason, Time start, Time end) {
    if (end > start) steps_.push_back({task, reason, start, end});
  }

  // An end that happens with one it waited for was held up by that one, and its own work no longer matters.
  EventId before_end(TaskId task) {
    const Span& span = spans_[task];
    const EventId held_up_by = one_at(end_of(task), span.end, start_of(task));
    if (held_up_by != kNoEvent) return held_up_by;
    const bool stands_in = !stand_ins_.empty() && stand_ins_[task];
    const Time alone = std::min(graph_.task(task).solo, span.end - span.start);
    add(task, PathReason::slowed, span.start + alone, span.end);
    add(task, stands_in ? PathReason::stragglers : PathReason::running, span.start, span.start + alone);
    return start_of(task);
  }

  EventId before_start(TaskId task) {
    const Span& span = spans_[task];
    const Time released = span.ready - graph_.task(task).delay;
    add(task, PathReason::sms, span.ready, span.start);
    add(task, PathReason::launch, released, span.ready);
    return released > Time::zero() ? one_at(start_of(task), released) : kNoEvent;
  }

  const TaskGraph& graph_;
  const std::vector<Span>& spans_;
  const std::vector<bool>& stand_ins_;
  Predecessors before_;
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

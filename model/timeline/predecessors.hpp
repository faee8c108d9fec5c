// The events that each event waits for: a task graph has them the other way round.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

inline constexpr EventId kNoEvent = ~EventId{0};

/// When the timeline has it.
[[nodiscard]] inline Time time_of(EventId event, const Timeline& timeline) {
  const Span& span = timeline.spans[task_of(event)];
  return is_start(event) ? span.start : span.end;
}

/// Of what ends last, the first by id; kNoEvent of an empty timeline.
[[nodiscard]] inline EventId last_event(const Timeline& timeline) {
  EventId last = kNoEvent;
  for (TaskId task = 0; task < timeline.spans.size(); ++task) {
    if (last == kNoEvent || timeline.spans[task].end > time_of(last, timeline)) last = end_of(task);
  }
  return last;
}

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

  /// The first by id that happened at that instant; kNoEvent: none did.
  [[nodiscard]] EventId one_at(EventId event, Time instant, const Timeline& timeline, EventId but = kNoEvent) const {
    for (const EventId before : of(event)) {
      if (before != but && time_of(before, timeline) == instant) return before;
    }
    return kNoEvent;
  }

  /// An end that happens with one it waited for was held up by that one; kNoEvent: by its own work.
  [[nodiscard]] EventId held_up(TaskId task, const Timeline& timeline) const {
    return one_at(end_of(task), timeline.spans[task].end, timeline, start_of(task));
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<EventId> before_;
};

}  // namespace moeline

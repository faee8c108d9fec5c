// What let each task of a timeline start, and end, when it did.
#pragma once

#include <span>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

inline constexpr EventId kNoEvent = ~EventId{0};

/// Of what ends last, the first by id; kNoEvent of an empty timeline.
[[nodiscard]] EventId last_event(const Timeline& timeline);

/// REQUIRES: graph and timeline outlive it, and the timeline is the graph's.
class Releases {
 public:
  Releases(const TaskGraph& graph, const Timeline& timeline);

  /// From when the task's delay counts: nothing that it waits for happened later.
  [[nodiscard]] Time released(TaskId task) const { return spans_[task].ready - graph_.task(task).delay; }
  /// The event that released the task: of several at that instant the first by id. kNoEvent: it waited for nothing.
  [[nodiscard]] EventId of_start(TaskId task) const;
  /// The event that the task's end waited for, where that came last; kNoEvent: the task ended when its work was done.
  [[nodiscard]] EventId of_end(TaskId task) const;

  /// The events that this one waits for; of an end its own start among them.
  [[nodiscard]] std::span<const EventId> before(EventId event) const {
    return {before_.data() + begin_[event], before_.data() + begin_[event + 1]};
  }

 private:
  [[nodiscard]] Time at(EventId event) const;
  [[nodiscard]] EventId one_at(EventId event, Time instant, EventId but = kNoEvent) const;

  const TaskGraph& graph_;
  const std::vector<Span>& spans_;
  std::vector<std::size_t> begin_;  // the graph's edges the other way round
  std::vector<EventId> before_;
};

}  // namespace moeline

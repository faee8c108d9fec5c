// What let each task of a timeline start, and end, when it did.
#pragma once

#include <limits>
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

// What happened in a timeline, in the order of cause and effect: every change of a task's speed, and why it came then.

/// An index into Timeline::changes.
using Position = std::uint32_t;
inline constexpr Position kNowhere = std::numeric_limits<Position>::max();

class History {
 public:
  /// What a change of a task's speed is.
  enum class Kind : std::uint8_t {
    wait,  ///< for more SMs than it holds
    start,
    speed,
    done,  ///< its work; the end may still wait
    end,
  };
  struct Entry {
    Position previous = kNowhere;  ///< of its task
    /// The last start or end in its domain before it, at that instant, which changed its speed; of a start and a wait
    /// the last end that freed SMs of its pool. kNowhere: none did.
    Position cause = kNowhere;
    Kind kind = Kind::speed;
  };

  /// REQUIRES: a timeline recorded with its changes; both outlive it.
  History(const TaskGraph& graph, const Timeline& timeline);

  [[nodiscard]] const Entry& operator[](Position position) const { return entries_[position]; }
  [[nodiscard]] const Change& change(Position position) const { return timeline_.changes[position]; }
  [[nodiscard]] Position size() const { return static_cast<Position>(entries_.size()); }
  [[nodiscard]] const Releases& releases() const { return releases_; }
  [[nodiscard]] std::uint32_t domain_of(TaskId task) const;

 private:
  void find_kinds();
  void find_causes();

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> domains_;
  Releases releases_;
  std::vector<Entry> entries_;
};

}  // namespace moeline

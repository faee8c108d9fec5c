// What happened in a timeline, in the order of cause and effect: every change of a task's speed, and why it came then.
#pragma once

#include <limits>
#include <vector>

#include "engine/timeline.hpp"
#include "timeline/releases.hpp"

namespace moeline {

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

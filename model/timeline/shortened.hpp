// How much later each task of a timeline could end before the timeline would.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "timeline/history.hpp"

namespace moeline {

/// By task. Every task keeps what it waited for, SMs included, and how long it took: 0 on the critical path, and of
/// what ties with it.
[[nodiscard]] std::vector<Time> slack(const TaskGraph& graph, const Timeline& timeline, const History& history);

// How long a timeline would be if some of its tasks took less time, without simulating it again: each keeps what it
// waited for, and how much its neighbours slowed it down.

/// What becomes of times, by task: factors on how long it runs, and on its delay.
struct Factors {
  std::vector<float> run, delay;
};

class Shortened {
 public:
  /// `history`: of the timeline. `since`: where spans begin, 0 or the start of a task. REQUIRES: all outlive it.
  Shortened(const TaskGraph& graph, const Timeline& timeline, const History& history, Time since = Time::zero());

  /// Time of a task that the end waited for.
  struct OnPath {
    TaskId task = 0;
    Time run{};
  };
  struct Result {
    Time span{};
    std::vector<OnPath> path{};  ///< backwards
  };
  /// Sets the factors of the one of this number; they come as 1. Called from several threads at once.
  using SetFactors = std::function<void(std::size_t, Factors&)>;
  /// So many, with the factors that `set` gives each. A span is the longest of chains that are linear in the factors,
  /// so convex in them. What started when others left it their SMs does so behind the same task as before. Exact where
  /// nobody slows a neighbour down.
  [[nodiscard]] std::vector<Result> operator()(std::size_t count, const SetFactors& set) const;

 private:
  using Times = std::vector<double>;  // ps, by event and one of the factors of a pass

  void pass(std::span<const Factors> several, Times& at) const;
  [[nodiscard]] Result result(const Factors& factors, std::size_t index, const Times& at) const;

  const TaskGraph& graph_;
  const History& history_;
  EventId first_ = kNoEvent;       // where the span begins; kNoEvent: at 0
  std::vector<EventId> last_;      // ends that nothing waits for
  std::vector<EventId> order_;     // causes first
  std::vector<EventId> freed_by_;  // by task: the end that it got its SMs from; kNoEvent: it did not wait for SMs
  std::vector<double> own_ps_;     // by task: from its start until its work was done
};

}  // namespace moeline

// The recorded changes of a run, played back instant by instant.
#pragma once

#include <cmath>
#include <vector>

#include "engine/simulate.hpp"

namespace moeline::testing {

inline double ps(Time time) { return static_cast<double>(time.count()); }

class Replay {
 public:
  Replay(const TaskGraph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline), tasks_(graph.size()) {
    for (TaskId id = 0; id < graph.size(); ++id) tasks_[id].left_ps = ps(graph.task(id).solo);
  }

  /// Applies all changes of the next instant; false after the last.
  bool next() {
    const std::vector<Change>& changes = timeline_.changes;
    if (position_ == changes.size()) return false;
    for (now_ = changes[position_].at; position_ < changes.size() && changes[position_].at == now_; ++position_) {
      const Change& change = changes[position_];
      Played& task = tasks_[change.task];
      task.worked_out = worked_out(change.task);  // before rounding leaves a trace of work behind
      task.left_ps -= ps(now_ - task.since) * task.speed;
      task.since = now_;
      task.speed = change.speed;
      task.sms = change.sms;
    }
    return true;
  }

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] double sms(TaskId id) const { return tasks_[id].sms; }
  [[nodiscard]] double speed(TaskId id) const { return tasks_[id].speed; }
  /// What it gets of what it wants: its speed, and of an elastic task that has done its work, what it keeps.
  [[nodiscard]] double share(TaskId id) const {
    const Task& task = graph_.task(id);
    return task.hold == Hold::elastic ? sms(id) / task.sms : speed(id);
  }
  [[nodiscard]] double left_ps(TaskId id) const {
    return tasks_[id].left_ps - ps(now_ - tasks_[id].since) * tasks_[id].speed;
  }
  [[nodiscard]] const Span& span(TaskId id) const { return timeline_.spans[id]; }
  /// Between its start and its end: a task that has started may be starved, and one whose work is done may wait.
  [[nodiscard]] bool running(TaskId id) const { return span(id).start <= now_ && now_ < span(id).end; }
  [[nodiscard]] bool waiting(TaskId id) const { return span(id).ready <= now_ && now_ < span(id).start; }
  /// Its completion has come: the first whole picosecond at which no work is left.
  [[nodiscard]] bool worked_out(TaskId id) const {
    const Played& task = tasks_[id];
    if (task.worked_out || task.left_ps == 0) return true;
    return task.speed > 0 && task.since + Time{static_cast<std::int64_t>(std::ceil(task.left_ps / task.speed))} <= now_;
  }

  /// What the tasks take of each resource. A task that has done its work uses no link, and keeps its SMs.
  [[nodiscard]] std::vector<double> taken() const {
    std::vector<double> sum(graph_.resources().size());
    for (TaskId id = 0; id < graph_.size(); ++id) {
      if (!running(id)) continue;
      if (const ResourceId pool = graph_.task(id).pool; pool != kNoPool) sum[pool] += sms(id);
      for (const Usage& usage : graph_.usages(id)) sum[usage.link] += usage.rate * speed(id);
    }
    return sum;
  }

 private:
  struct Played {
    double left_ps = 0, speed = 0, sms = 0;
    bool worked_out = false;
    Time since{};
  };
  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::vector<Played> tasks_;
  std::size_t position_ = 0;
  Time now_{};
};

}  // namespace moeline::testing

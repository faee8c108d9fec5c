// Why a timeline takes as long as it does: the chain of tasks that its end waited for, every instant of it with a
// reason.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

/// What a task on the path does, or waits for, meanwhile.
enum class PathReason : std::uint8_t {
  running,      ///< as fast as alone
  slowed,       ///< by what it takes longer than alone: neighbours on its SMs, links or copies
  sms,          ///< waits for SMs that others hold
  launch,       ///< the delay between its release and its start: a launch gap, a latency
  stragglers,   ///< stands for a rank that is not simulated, which others wait for
  unexplained,  ///< of a measured timeline, a longer delay than a launch takes: the trace has no reason
};
inline constexpr std::size_t kPathReasons = 6;
[[nodiscard]] const std::string& name_of(PathReason reason);

/// A stretch of the path: from `start` to `end` nothing but this kept the timeline from ending earlier.
struct PathStep {
  TaskId task = 0;
  PathReason reason = PathReason::running;
  Time start{}, end{};
  ResourceId by =
      kNoPool;  ///< of `slowed`: what there was too little of; kNoPool: kernels beside a transfer, or unknown
};

/// From 0 to the makespan without a gap, in order of time. Backwards from the task that ends last: an end that was held
/// up by another end leads there; else the task ran since its start, waited for SMs since it was ready, and before that
/// for its delay since the last thing it was released by. Of several that release at one instant the first by id is
/// taken. `stand_ins`: by task, whether it stands for ranks that are not simulated; empty: none does.
[[nodiscard]] std::vector<PathStep> critical_path(const TaskGraph& graph, const Timeline& timeline,
                                                  const std::vector<bool>& stand_ins = {});

/// Delays of kernels that take so long or longer are no launches: nothing is known of them.
void mark_unexplained(const TaskGraph& graph, Time least, std::vector<PathStep>& path);

/// The same path with each `slowed` in parts, one for each resource that the task had too little of. REQUIRES: a
/// timeline recorded with its changes.
[[nodiscard]] std::vector<PathStep> by_resource(const std::vector<PathStep>& path, const Timeline& timeline);

/// Time of the path by what it went into: a class of tasks, a phase, and a reason.
struct Blame {
  std::string task_class, phase;
  PathReason reason = PathReason::running;
  std::string by{};  ///< of `slowed`: the resource's name, or ""
  Time time{};
};

/// Of a graph without phases "".
[[nodiscard]] const std::string& phase_of(const PathStep& step, const TaskGraph& graph);

/// By phase, a number of its name: of all that are called alike the same.
[[nodiscard]] std::vector<std::uint32_t> phase_names(const TaskGraph& graph);

/// Largest first. Sums to the makespan, to the picosecond.
[[nodiscard]] std::vector<Blame> blame(const TaskGraph& graph, const std::vector<PathStep>& path);

}  // namespace moeline

// Why a resource's lower bound is not reached: what the timeline's end waited for while the resource had nothing to do.
#pragma once

#include <string>
#include <vector>

#include "graph/task_graph.hpp"
#include "timeline/critical_path.hpp"

namespace moeline {

/// Of each step of the path the time for which the resource did no work: half of it idle for a step counts half. Work
/// is SMs wanted or rate, times speed, so that SMs held by what is slowed down are not all at work. With the resource's
/// work over its capacity it sums to the path. REQUIRES: a timeline recorded with its changes.
[[nodiscard]] std::vector<Time> unused(const TaskGraph& graph, const Timeline& timeline, ResourceId resource,
                                       const std::vector<PathStep>& path);

// How short a task graph could be at all, by the engine's own rules.

/// No timeline of the graph is shorter.
struct Bound {
  std::string what;  ///< "path", or the resource that is full all the time
  Time time{};
  ResourceId resource = kNoPool;  ///< of the graph
  Time busy{};                    ///< of a resource: its work over its capacity, without what comes before and after
};

/// Of the time from `since` on, before which no kernel starts. First the longest chain of tasks, each as fast as alone;
/// then for every pool and link, in the order of the resources, the work that it has to do over its capacity (SMs
/// wanted, or what the link carries, times the time alone) with the least that comes before its first and after its
/// last task: of a pipeline's stage the ramp. Resources of which nobody wants anything are left out.
[[nodiscard]] std::vector<Bound> lower_bounds(const TaskGraph& graph, Time since = Time::zero());

}  // namespace moeline

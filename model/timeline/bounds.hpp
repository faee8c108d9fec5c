// How short a task graph could be at all, by the engine's own rules.
#pragma once

#include <string>
#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

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

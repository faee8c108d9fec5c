// The tasks of one rank as a profiler would have seen them: which are kernels, and who launched and awaited which.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

struct TraceTasks {
  std::vector<TaskId> kernels, host;          ///< by stream, then start
  std::map<TaskId, TaskId> launcher;          ///< of kernels: the host task that launches them
  std::map<TaskId, TaskId> waited_for;        ///< of host tasks: the kernel they wait for
  std::map<TaskId, std::size_t> correlation;  ///< of kernels
  std::set<TaskId> wires;                     ///< data on its way, that a kernel of its phase sends
};

/// `graph_launch`: one launch for all kernels, as of a CUDA graph, in which the host does nothing.
[[nodiscard]] TraceTasks trace_tasks(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                                     bool graph_launch);

}  // namespace moeline

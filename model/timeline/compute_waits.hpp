// Where compute waits for communication: exposed communication, told apart from launch gaps and by what waits.
#pragma once

#include <string>
#include <vector>

#include "engine/timeline.hpp"

namespace moeline {

struct ComputeWait {
  std::uint32_t phase = 0;  ///< of the graph: whose kernels waited
  Time wait{};
};

/// Of the stream "compute" of one rank, by phase in order of execution; phases that never wait are left out. A kernel
/// waits from the end of the one before it on the stream until it is released, as far as communication of the rank runs
/// meanwhile and no other compute: launch gaps and waits for SMs or for a side stream do not count.
/// A kernel that receives waits for messages whether or not this rank's own still travel.
[[nodiscard]] std::vector<ComputeWait> compute_waits(const TaskGraph& graph, const Timeline& timeline,
                                                     std::uint32_t rank);

}  // namespace moeline

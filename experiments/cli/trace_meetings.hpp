// What the kernels of a simulated trace say of the ranks that they run with.
#pragma once

#include "experiments/run/run.hpp"
#include "timeline/write_trace.hpp"

namespace moeline {

/// Nothing where a task sends nothing together with other ranks. Ranks have numbers where each GPU of a group is a rank
/// of the trace; of a pipeline one GPU stands for each stage, so that groups have a name and a size alone: one of its
/// own on each rank, but for what all ranks do. (The replicas of a stage are of two pipeline ranks in DualPipe. What
/// one of them reduces does not wait for the other in the simulation, so they are two groups here.)
[[nodiscard]] std::optional<TraceMeeting> trace_meeting(const Run& run, TaskId task, int rank);

}  // namespace moeline

// Which annotation a GPU event belongs to.
#pragma once

#include "timeline/trace_records.hpp"

namespace moeline {

/// Sets the annotation of every GPU event: the innermost one that contains the event on its own track, else the
/// innermost one that contains the start of its launch, on the launch's thread, else on any thread (the autograd
/// thread launches kernels whose annotation stands on the main thread). What frameworks annotate
/// themselves (ProfilerStep, nccl:…, Optimizer.…, compiled regions) never counts.
/// Innermost: latest to start; of those, first to end; of those, the last one listed. Bounds belong to an annotation.
/// REQUIRES annotations by start, longer ones first, and events that know their calls. O(n log n).
void attribute(TraceRecords& records);

}  // namespace moeline

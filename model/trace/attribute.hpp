// Which annotations a GPU event belongs to.
#pragma once

#include "trace/annotation_levels.hpp"

namespace moeline {

enum class Where : std::uint8_t { on_stream, at_launch };

/// By GPU event: of the annotations of this level the innermost one that contains the event on its own track, or the
/// innermost one that contains the start of its launch, on the launch's thread, else on any thread (the autograd thread
/// launches kernels whose annotation stands on the main thread). An index; -1: there is none.
/// Innermost: latest to start; of those, first to end; of those, the last one listed. Bounds belong to an annotation.
/// REQUIRES annotations by start, longer ones first, and events that know their calls. O(n log n).
[[nodiscard]] std::vector<std::int32_t> innermost(const TraceRecords& records,
                                                  const std::vector<AnnotationLevel>& levels, AnnotationLevel level,
                                                  Where where);

/// Sets the annotation of every GPU event: the phase around it on its own track, else that around its launch.
void attribute(TraceRecords& records, const std::vector<AnnotationLevel>& levels);

}  // namespace moeline

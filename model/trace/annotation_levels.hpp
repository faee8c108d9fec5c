// What each annotation of a trace is: a step, a phase of one, or neither.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "trace/trace_records.hpp"

namespace moeline {

enum class AnnotationLevel : std::uint8_t {
  ignored,  ///< a framework's own, or around steps
  phase,
  step,
};

struct Levels {
  std::vector<AnnotationLevel> of;  ///< by annotation
  bool by_profiler = false;         ///< the steps are PyTorch's ProfilerStep#N, and nothing finer is known
};

/// Steps are the annotations that step_names knows and those whose name is in `also`; where there are none, the
/// profiler's. What encloses a step on its own track is no phase, wherever else its name stands.
/// REQUIRES annotations by start, longer ones first.
[[nodiscard]] Levels levels_of(const TraceRecords& records, const std::set<std::string>& also = {});

}  // namespace moeline

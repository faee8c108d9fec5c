// Two timelines in one Chrome trace, as neighbouring processes.
#pragma once

#include <string>
#include <vector>

#include "timeline/kernel_spans.hpp"

namespace moeline {

struct NamedTimeline {
  std::string name;
  std::vector<KernelSpan> kernels;  ///< by start
};

/// Both begin at 0, with their first kernels. One process each, one thread per stream, phases above their kernels; a
/// kernel that overlaps the one before it on its stream stands on a second thread of that stream, since viewers drop
/// slices that overlap without nesting.
[[nodiscard]] std::string merged_trace(const std::vector<NamedTimeline>& timelines);

}  // namespace moeline

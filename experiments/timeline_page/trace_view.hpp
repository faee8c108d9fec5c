// A measured trace as a page draws it.
#pragma once

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Kernels at their measured times, as many as a page holds. What released them is what the trace's order says;
/// the path is that of the replay.
[[nodiscard]] TimelineView view_of(const Measured& measured, const ReplayGraph& replay, const Explanation& explanation);

}  // namespace moeline

// Bars of kernels of which no task graph is known: measured ones, and both sides of a comparison.
#pragma once

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/view.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

/// The first `most` of the kernels, by start, lanes by rank and stream. `stream_names`: of streams that have one.
/// Returns which kernel each bar is. REQUIRES: kernels by start.
std::vector<std::size_t> add_spans(const std::vector<KernelSpan>& kernels, std::size_t most,
                                   const std::map<std::uint32_t, std::string>& stream_names, ViewDraft& draft);

// A measured trace as a page draws it.

/// Kernels at their measured times, as many as a page holds. What released them is what the trace's order says;
/// the path is that of the replay.
[[nodiscard]] TimelineView view_of(const Measured& measured, const ReplayGraph& replay, const Explanation& explanation);

}  // namespace moeline

// Bars of kernels of which no task graph is known: measured ones, and both sides of a comparison.
#pragma once

#include "experiments/timeline_page/draft.hpp"
#include "timeline/kernel_spans.hpp"

namespace moeline {

/// The first `most` of the kernels, by start, lanes by rank and stream. `stream_names`: of streams that have one.
/// Returns which kernel each bar is. REQUIRES: kernels by start.
std::vector<std::size_t> add_spans(const std::vector<KernelSpan>& kernels, std::size_t most,
                                   const std::map<std::uint32_t, std::string>& stream_names, ViewDraft& draft);

}  // namespace moeline

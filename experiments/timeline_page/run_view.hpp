// A simulated run as a page draws it.
#pragma once

#include <set>

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// The ranks that were simulated.
[[nodiscard]] std::set<std::uint32_t> simulated_ranks(const TaskGraph& graph);

/// Kernels of `ranks`; empty: of rank 0 and of the rank that the end waited for most, as many as a page holds. Of a
/// whole step of training the slots of all ranks, and kernels of the middle of the first of `ranks`.
[[nodiscard]] TimelineView view_of(const Run& run, const Explanation& explanation,
                                   const std::set<std::uint32_t>& ranks);

}  // namespace moeline

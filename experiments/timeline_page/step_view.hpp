// A whole step of training as a page draws it.
#pragma once

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Part of a timeline of one rank in which single kernels are shown.
struct CloseUp {
  std::uint32_t rank = 0;
  Interval time{};
};

/// Slots of all ranks, and what follows each rank's last one; where kernels were simulated, those of some slots in the
/// middle of `rank`, which is then the close-up. REQUIRES: the run is a whole step.
[[nodiscard]] TimelineView slots_of(const Run& run, const Explanation& explanation, std::uint32_t rank,
                                    CloseUp& close_up);

}  // namespace moeline

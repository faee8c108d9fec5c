// How much of a rank's SMs, memory and links is taken when.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/timeline_page/view.hpp"
#include "timeline/intervals.hpp"

namespace moeline {

/// Part of a timeline of one rank in which single kernels are shown.
struct CloseUp {
  std::uint32_t rank = 0;
  Interval time{};
};

/// Of every SM pool and link that tasks of these ranks use, rank by rank. One that changes more than `most_steps` times
/// has means over as many equal times instead, but where it is shown closely. Empty where the timeline has no changes.
[[nodiscard]] std::vector<ResourceUse> resource_uses(const TaskGraph& graph, const Timeline& timeline,
                                                     const std::set<std::uint32_t>& ranks, std::size_t most_steps,
                                                     const CloseUp& close_up);

}  // namespace moeline

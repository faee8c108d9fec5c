// How much of a rank's SMs, memory and links is taken when.
#pragma once

#include <set>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Of every SM pool and link that tasks of these ranks use, rank by rank. Empty where the timeline has no changes.
[[nodiscard]] std::vector<ResourceUse> resource_uses(const TaskGraph& graph, const Timeline& timeline,
                                                     const std::set<std::uint32_t>& ranks);

}  // namespace moeline

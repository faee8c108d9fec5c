// A resource's use with as many steps as a page has room for.
#pragma once

#include <set>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Without steps that are the same when they are written. Where still more than `most_steps` are left: means over as
/// many equal times up to `end`, but inside `exact` the steps themselves.
void thin(ResourceUse& use, Time end, std::size_t most_steps, const Interval& exact = {});

// How much of a rank's SMs, memory and links is taken when.

/// Of every SM pool and link that tasks of these ranks use, rank by rank. Empty where the timeline has no changes.
[[nodiscard]] std::vector<ResourceUse> resource_uses(const TaskGraph& graph, const Timeline& timeline,
                                                     const std::set<std::uint32_t>& ranks);

}  // namespace moeline

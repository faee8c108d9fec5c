// A resource's use with as many steps as a page has room for.
#pragma once

#include "experiments/timeline_page/view.hpp"

namespace moeline {

/// Without steps that are the same when they are written. Where still more than `most_steps` are left: means over as
/// many equal times up to `end`, but inside `exact` the steps themselves.
void thin(ResourceUse& use, Time end, std::size_t most_steps, const Interval& exact = {});

}  // namespace moeline

// What a measured run's span answers to: the same things, under the same names, as replay's --scale changes.
#pragma once

#include <vector>

#include "experiments/explain/sensitivity.hpp"
#include "measured/replay.hpp"

namespace moeline {

/// Classes, phases and kernels of the GPU; "host": its calls and the time between them; "gaps": what lies between a
/// kernel and the last thing that it waited for. Times keep what they were measured with. REQUIRES: `replay` outlives
/// the items.
[[nodiscard]] std::vector<Item> replay_items(const ReplayGraph& replay, const Gradient& gradient, Time span);

}  // namespace moeline

// How much later each task of a timeline could end before the timeline would.
#pragma once

#include <vector>

#include "timeline/history.hpp"

namespace moeline {

/// By task. Every task keeps what it waited for, SMs included, and how long it took: 0 on the critical path, and of
/// what ties with it.
[[nodiscard]] std::vector<Time> slack(const TaskGraph& graph, const Timeline& timeline, const History& history);

}  // namespace moeline

// Why a resource's lower bound is not reached: what the timeline's end waited for while the resource had nothing to do.
#pragma once

#include <vector>

#include "timeline/critical_path.hpp"

namespace moeline {

/// Of each step of the path the time for which the resource did no work: half of it idle for a step counts half. Work
/// is SMs wanted or rate, times speed, so that SMs held by what is slowed down are not all at work. With the resource's
/// work over its capacity it sums to the path. REQUIRES: a timeline recorded with its changes.
[[nodiscard]] std::vector<Time> unused(const TaskGraph& graph, const Timeline& timeline, ResourceId resource,
                                       const std::vector<PathStep>& path);

}  // namespace moeline

// Which tasks of a graph are drawn, and on which lanes.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

[[nodiscard]] std::uint32_t rank_of(const TaskGraph& graph, TaskId task);

/// A task of the host that takes no time is a joint of the graph, and nothing to see.
[[nodiscard]] bool is_visible(const TaskGraph& graph, const Timeline& timeline, TaskId task);

/// Visible tasks of these ranks that start at `from` or later, by start.
[[nodiscard]] std::vector<TaskId> visible_tasks(const TaskGraph& graph, const Timeline& timeline,
                                                const std::set<std::uint32_t>& ranks, Time from = {});

/// Adds a lane for each stream that these tasks are on, by rank, the host last; by stream, where it is.
[[nodiscard]] std::map<std::uint16_t, std::uint32_t> add_lanes(const TaskGraph& graph, const std::vector<TaskId>& tasks,
                                                               TimelineView& view);

}  // namespace moeline

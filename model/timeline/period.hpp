// What a schedule that repeats itself layer by layer could not go below, however many layers there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

/// Layers that have the same tasks in the same order. Each as fast as alone in the layer where it is shortest.
struct Period {
  Time layer{};                 ///< the maximum cycle ratio: a layer takes no less on average
  Time all{};                   ///< what all of them take at least
  std::size_t layers = 0;       ///< that are alike
  std::vector<TaskId> cycle{};  ///< the tasks, of the first of these layers, that say so
};

/// Of rank 0: time over layers, the largest over all cycles of tasks that lead from a layer to a later one (Howard's
/// algorithm). Nothing where fewer than three layers in a row are alike.
[[nodiscard]] std::optional<Period> least_period(const TaskGraph& graph);

}  // namespace moeline

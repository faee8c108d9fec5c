// From the slots of all ranks to a task graph: one task per slot.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "graph/task_graph.hpp"
#include "schedules/pipeline/slot.hpp"

namespace moeline {

/// A zero-bubble B takes B - W.
struct SlotTimes {
  Time f{}, b{}, w{}, f_and_b{};
};

/// Each rank is one stream, in the order of its slots. F needs F of the stage before; B needs its own F and B of the
/// stage behind. Data is there as soon as the slot that made it ends.
/// REQUIRES: every pass that another needs stands in exactly one slot. Throws CycleError, which names the slots, where
/// the orders of the ranks wait for each other.
[[nodiscard]] TaskGraph lower_slots(const std::vector<RankSlots>& ranks, const SlotTimes& times);

}  // namespace moeline

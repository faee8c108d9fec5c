// From the slots of all ranks to a task graph: one task per slot.
#pragma once

#include <functional>
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

// The way of micro-batches through the stages: which pass needs the result of which.

/// The tasks that take a pass's data and give its result. Of a slot without such a pass neither.
struct PassEnds {
  TaskId in = kNoTask;
  TaskId out = kNoTask;
};

struct SlotEnds {
  PassEnds forward, backward;
};

/// From one stage to the next.
struct Delivery {
  bool is_forward = true;
  int micro_batch = 0;
  int from_rank = 0, to_rank = 0;
  std::size_t from_slot = 0;  ///< of the sender
  TaskId out = kNoTask, in = kNoTask;
};

/// Calls `deliver` for the input of every F from the stage before it, and of every B from the stage behind it, in the
/// order of the slots that give it, rank by rank; and orders every B after its own F.
/// `ends`: of all slots, by rank. REQUIRES: every pass that another needs stands in exactly one slot.
void connect_passes(const std::vector<RankSlots>& ranks, const std::vector<std::vector<SlotEnds>>& ends,
                    TaskGraphDraft& graph, const std::function<void(const Delivery&)>& deliver);

}  // namespace moeline

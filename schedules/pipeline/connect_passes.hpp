// The way of micro-batches through the stages: which pass needs the result of which.
#pragma once

#include <functional>
#include <vector>

#include "graph/task_graph.hpp"
#include "schedules/pipeline/slot.hpp"

namespace moeline {

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

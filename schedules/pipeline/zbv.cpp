// Two chunks on each rank in a V: 0 comes down the ranks, 1 goes up again.
#include <algorithm>

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

std::vector<Chunk> chunks_in_a_v(int rank, int ranks) {
  return {{.id = 0, .stage = rank}, {.id = 1, .stage = 2 * ranks - 1 - rank}};
}

RankSlots zbv(int rank, const PipelineShape& shape) {
  const int behind = shape.ranks - rank;
  // The order is one of this many micro-batches at least; those that there are not are left out.
  const int micro_batches = std::max(2 * shape.ranks - 1, shape.micro_batches);
  SlotWriter slots(chunks_in_a_v(rank, shape.ranks));
  // Warm-up
  for (int i = 0; i < 2 * behind - 1; ++i) slots.f(0);
  for (int i = 0; i < rank; ++i) {
    slots.f(1);
    slots.f(0);
  }
  for (int i = 0; i < behind; ++i) {
    slots.f(1);
    slots.b_input(1);
    slots.w();
  }
  // Steady state: as long as there are F, of either chunk
  const int warmed_up = 2 * behind - 1 + rank;
  for (int i = 0; i < micro_batches - shape.ranks; ++i) {
    if (warmed_up + i < micro_batches) slots.f(0);
    slots.b_input(0);
    slots.w();
    slots.f(1);
    slots.b_input(1);
    slots.w();
  }
  // Cool-down: W is put off where ranks in front wait for B
  for (int i = 0; i < rank; ++i) {
    slots.b_input(0);
    slots.b_input(1);
  }
  for (int i = 0; i < behind; ++i) {
    slots.b_input(0);
    slots.w();
  }
  for (int i = 0; i < 2 * rank; ++i) slots.w();
  RankSlots all = std::move(slots).finish();
  std::erase_if(all, [&](const Slot& slot) { return main_pass(slot).micro_batch >= shape.micro_batches; });
  return all;
}

}  // namespace moeline

// 0 and 1 are phases, as in the reference: 0 comes from the nearer end of the ranks, 1 from the farther one.
#include <algorithm>

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots dualpipe_steps(int inward, int half, int micro_batches_per_chunk, SlotWriter slots) {
  const int to_middle = half - 1 - inward;
  // Step 1: nF0
  for (int i = 0; i < 2 * to_middle; ++i) slots.f(0);
  // Step 2: nF0F1
  for (int i = 0; i < inward + 1; ++i) {
    slots.f(0);
    slots.f(1);
  }
  // Step 3: nB1W1F1 (zero bubble)
  for (int i = 0; i < to_middle; ++i) {
    slots.b_input(1);
    slots.w();
    slots.f(1);
  }
  // Step 4, the main step: nF0B1F1B0
  for (int i = 0; i < micro_batches_per_chunk - 2 * half + inward + 1; ++i) {
    if (i == 0 && to_middle == 0) {  // as in the reference: F need not wait for this first B
      slots.f(0);
      slots.b(1);
    } else {
      slots.f_and_b(0, 1);
    }
    slots.f_and_b(1, 0);
  }
  // Step 5: nB1F1B0
  for (int i = 0; i < to_middle; ++i) {
    slots.b(1);
    slots.f_and_b(1, 0);
  }
  // Step 6: nB1B0 (the second half of the chunks zero bubble)
  for (int i = 0; i < 2 * (inward + 1); ++i) {
    const int phase = i % 2 == 0 ? 1 : 0;
    i <= inward ? slots.b(phase) : slots.b_input(phase);
  }
  // Step 7: nWB0 (zero bubble)
  for (int i = 0; i < to_middle; ++i) {
    slots.w();
    slots.b_input(0);
  }
  // Step 8: nW
  for (int i = 0; i < inward + 1; ++i) slots.w();
  return std::move(slots).finish();
}

RankSlots dualpipe(int rank, const PipelineShape& shape) {
  const int half = shape.ranks / 2;
  const int mirrored = shape.ranks - 1 - rank;
  const int per_direction = shape.micro_batches / 2;
  const Chunk down{.id = 0, .stage = rank};
  const Chunk up{.id = 1, .stage = mirrored, .first_micro_batch = per_direction};
  const SlotWriter slots(rank < half ? std::vector{down, up} : std::vector{up, down});
  return dualpipe_steps(std::min(rank, mirrored), half, per_direction, slots);
}

}  // namespace moeline

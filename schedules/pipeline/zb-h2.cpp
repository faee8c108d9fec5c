#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots zb_h2(int rank, const PipelineShape& shape) {
  SlotWriter slots(std::vector{Chunk{.stage = rank}});
  const int warmup = 2 * (shape.ranks - rank) - 1;
  // Warm-up: until the first B comes back
  for (int i = 0; i < warmup; ++i) slots.f();
  // Steady state
  for (int i = 2 * shape.ranks - 1; i < shape.micro_batches; ++i) {
    slots.b_input();
    slots.w();
    slots.f();
  }
  // Cool-down: ranks in front, which have no more F, need B twice as often. Two W for each of them are put off.
  for (int i = 0; i < 2 * rank; ++i) {
    slots.b_input();
    slots.f();
  }
  for (int i = 0; i < warmup; ++i) {
    slots.b_input();
    slots.w();
  }
  for (int i = 0; i < 2 * rank; ++i) slots.w();
  return std::move(slots).finish();
}

}  // namespace moeline

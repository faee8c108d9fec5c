#include <algorithm>

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots one_f_one_b(int rank, const PipelineShape& shape) {
  SlotWriter slots(std::vector{Chunk{.stage = rank}});
  const int behind = shape.ranks - 1 - rank;
  const int warmup = std::min(shape.combined ? 2 * behind + 1 : behind, shape.micro_batches);
  // Warm-up
  for (int i = 0; i < warmup; ++i) slots.f();
  // Steady state: one forward, one backward
  for (int i = warmup; i < shape.micro_batches; ++i) {
    slots.f_then_b(shape.combined);
  }
  // Cool-down
  for (int i = 0; i < warmup; ++i) slots.b();
  return std::move(slots).finish();
}

}  // namespace moeline

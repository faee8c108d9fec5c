#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots zb1p(int rank, const PipelineShape& shape) {
  SlotWriter slots(std::vector{Chunk{.stage = rank}});
  const int ranks_behind = shape.ranks - 1 - rank;
  // Warm-up
  for (int i = 0; i < ranks_behind; ++i) slots.f();
  // As many W as there are ranks in front are put off: they fill the end, where those ranks still need B.
  for (int i = 0; i < rank; ++i) {
    slots.f();
    slots.b_input();
  }
  // Steady state
  for (int i = shape.ranks - 1; i < shape.micro_batches; ++i) {
    slots.f();
    slots.b_input();
    slots.w();
  }
  // Cool-down
  for (int i = 0; i < ranks_behind; ++i) {
    slots.b_input();
    slots.w();
  }
  for (int i = 0; i < rank; ++i) slots.w();
  return std::move(slots).finish();
}

}  // namespace moeline

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots gpipe(int rank, const PipelineShape& shape) {
  RankSlots slots;
  const auto pass = [&](int micro_batch) { return Pass{.micro_batch = micro_batch, .stage = rank}; };
  for (int m = 0; m < shape.micro_batches; ++m) slots.push_back({.kind = SlotKind::forward, .forward = pass(m)});
  // The last micro-batch first, as in the figure.
  for (int m = shape.micro_batches; m-- > 0;) slots.push_back({.kind = SlotKind::backward, .backward = pass(m)});
  return slots;
}

}  // namespace moeline

#include <algorithm>

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots interleaved_one_f_one_b(int rank, const PipelineShape& shape) {
  const int passes = shape.micro_batches * shape.chunks;
  std::vector<Chunk> chunks;
  chunks.reserve(static_cast<std::size_t>(shape.chunks));
  for (int c = 0; c < shape.chunks; ++c) chunks.push_back({.id = c, .stage = c * shape.ranks + rank});
  SlotWriter slots(chunks);
  // As many micro-batches as there are ranks pass one chunk, then the same ones the next; backward from the last chunk.
  const auto forward_chunk = [&](int pass) { return pass / shape.ranks % shape.chunks; };
  const auto backward_chunk = [&](int pass) { return shape.chunks - 1 - forward_chunk(pass); };
  const int before = 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * shape.ranks;
  const int warmup = std::min(shape.combined ? before + 1 : before, passes);
  // Warm-up
  for (int i = 0; i < warmup; ++i) slots.f(forward_chunk(i));
  // Steady state: one forward, one backward
  for (int i = warmup; i < passes; ++i) {
    slots.f_then_b(shape.combined, forward_chunk(i), backward_chunk(i - warmup));
  }
  // Cool-down
  for (int i = passes - warmup; i < passes; ++i) slots.b(backward_chunk(i));
  return std::move(slots).finish();
}

}  // namespace moeline

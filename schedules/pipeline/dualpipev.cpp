#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots dualpipev(int rank, const PipelineShape& shape) {
  const SlotWriter slots(
      std::vector{Chunk{.id = 0, .stage = rank}, Chunk{.id = 1, .stage = 2 * shape.ranks - 1 - rank}});
  return dualpipe_steps(rank, shape.ranks, shape.micro_batches, slots);
}

}  // namespace moeline

#include "schedules/pipeline/pipelines.hpp"

namespace moeline {

RankSlots dualpipev(int rank, const PipelineShape& shape) {
  return dualpipe_steps(rank, shape.ranks, shape.micro_batches, SlotWriter(chunks_in_a_v(rank, shape.ranks)));
}

}  // namespace moeline

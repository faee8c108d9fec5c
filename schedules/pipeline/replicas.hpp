// Which ranks hold the same parameters, and where they lie: ranks of a stage, tp x cp x dp of them, follow each
// other, tensor and expert parallelism innermost; those of the next stage come after.
#pragma once

#include <array>

#include "moe/collectives.hpp"
#include "moe/training_memory.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// From a rank to the one of its index in the next stage.
[[nodiscard]] Reach next_stage(const Setup& setup);

/// `copies`: ranks of the pipeline that hold the stage, two in DualPipe.
[[nodiscard]] Replicas replicas_of_stage(const Setup& setup, int copies);
/// Of its routed experts: tp x cp x dp / (ep x moe_tp).
[[nodiscard]] Replicas replicas_of_experts(const Setup& setup, int copies);

/// Parameters that the same ranks hold.
struct SharedParameters {
  double parameters = 0;
  double weight_bytes = 0;    ///< as they lie in memory
  double gathered_bytes = 0;  ///< as they travel: Megatron's in BF16, of which each rank makes its copies in FP8
  Replicas replicas;
};
/// Those of routed experts last.
[[nodiscard]] std::array<SharedParameters, 2> shared_parameters(const Setup& setup, const StageParameters& own,
                                                                int copies);

}  // namespace moeline

// Which ranks hold the same parameters, and where they lie: ranks of a stage, tp x dp of them, follow each other,
// tensor and expert parallelism innermost; those of the next stage come after.
#pragma once

#include "moe/collectives.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// From a rank to the one of its index in the next stage.
[[nodiscard]] Reach next_stage(const Setup& setup);

/// `copies`: ranks of the pipeline that hold the stage, two in DualPipe.
[[nodiscard]] Replicas replicas_of_stage(const Setup& setup, int copies);
/// Of its routed experts: tp x dp / ep times as many.
[[nodiscard]] Replicas replicas_of_experts(const Setup& setup, int copies);

}  // namespace moeline

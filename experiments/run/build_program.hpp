// Programs of setups: the switch from a schedule's name to its tasks, and the setups of which a pipeline is made.
#pragma once

#include "schedules/lowering/program.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// The tasks of the setup's schedule, whose waits for ranks that are not simulated are not charged yet. REQUIRES: it is
/// no whole pipeline (training_step.hpp, pipelines.hpp).
[[nodiscard]] Program build_program(const Setup& setup);

/// Eight MoE layers of a pipeline's passes on one rank, the slowest that is expected: by "sequential" as in slots that
/// run alone, by "dualpipe-chunk" as in overlapped ones.
[[nodiscard]] Setup layers_of_pipeline(const Setup& setup, const char* schedule);

/// Of prefill or decode on a pipeline: all layers on one stage, with the micro-batch of a pass, or a chunk in a
/// prompt's middle. REQUIRES: is_staged.
[[nodiscard]] Setup one_pass(const Setup& setup);

}  // namespace moeline

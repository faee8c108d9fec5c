// The switch from a schedule's name to its program.
#pragma once

#include "schedules/lowering/program.hpp"

namespace moeline {

/// The tasks of the setup's schedule, whose waits for ranks that are not simulated are not charged yet. REQUIRES: it is
/// no whole pipeline (training_step.hpp, pipeline.hpp).
[[nodiscard]] Program build_program(const Setup& setup);

}  // namespace moeline

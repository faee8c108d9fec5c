// Layers simulated: those of a chunk of training, or of a step of prefill or decode with all that is around them.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// The program on the engine, and nothing measured yet.
[[nodiscard]] Run simulated(const Setup& setup, Program program, const SimulateOptions& options);

/// Metrics, phases and steady state; memory and time to first token are left to run_scenario.
[[nodiscard]] Run run_layers(const Setup& setup, const SimulateOptions& options = {});

}  // namespace moeline

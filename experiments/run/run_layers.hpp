// Layers simulated: those of a chunk of training, or of a step of prefill or decode with all that is around them, on
// one stage or on a pipeline of stages.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// The program on the engine, and nothing measured yet.
[[nodiscard]] Run simulated(const Setup& setup, Program program, const SimulateOptions& options);

/// Metrics, phases and steady state; memory and time to first token are left to run_scenario.
[[nodiscard]] Run run_layers(const Setup& setup, const SimulateOptions& options = {});

/// A step is a round in steady state: of decode each request gets its token, of prefill the stages go on by `tokens` of
/// a prompt, on average over its chunks. Metrics are of that time on all stages, phases of that round; a layer's are of
/// one pass over all layers, alone. Time to first token: of the first prompt, which nobody is ahead of.
/// REQUIRES: is_staged.
[[nodiscard]] Run run_stages(const Setup& setup, const SimulateOptions& options = {});

/// A prompt that takes several steps is done when its last chunk is: of prefill, whose chunks are longer from one to
/// the next, of which `run` must be the first; of a mixed step, which is the mean of them.
[[nodiscard]] double time_to_first_token_ms(const Run& run);

}  // namespace moeline

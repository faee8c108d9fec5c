// Prefill and decode on a pipeline of stages.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// A step is a round in steady state: of decode each request gets its token, of prefill the stages go on by `tokens` of
/// a prompt, on average over its chunks. Metrics are of that time on all stages, phases of that round; a layer's are of
/// one pass over all layers, alone. Time to first token: of the first prompt, which nobody is ahead of.
/// REQUIRES: is_staged.
[[nodiscard]] Run run_stages(const Setup& setup, const SimulateOptions& options = {});

}  // namespace moeline

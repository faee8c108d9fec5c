// How long a prompt waits for its first token.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// Of prefill. A prompt that takes several steps is done when its last chunk is. REQUIRES: `run` is of its first step.
[[nodiscard]] double time_to_first_token_ms(const Run& run);

}  // namespace moeline

// How long a prompt waits for its first token.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// A prompt that takes several steps is done when its last chunk is: of prefill, whose chunks are longer from one to
/// the next, of which `run` must be the first; of a mixed step, which is the mean of them.
[[nodiscard]] double time_to_first_token_ms(const Run& run);

}  // namespace moeline

// What the slots or passes of a pipeline are made of, alone.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Eight MoE layers of a pipeline's passes on one rank, the slowest that is expected: by "sequential" as in slots that
/// run alone, by "dualpipe-chunk" as in overlapped ones.
[[nodiscard]] Setup layers_of_pipeline(const Setup& setup, const char* schedule);

/// Of prefill or decode on a pipeline: all layers on one stage, with the micro-batch of a pass, or a chunk in a
/// prompt's middle. REQUIRES: is_staged.
[[nodiscard]] Setup one_pass(const Setup& setup);

}  // namespace moeline

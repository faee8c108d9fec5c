// What a step of training needs at least, before anything is priced.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Bytes of the fullest GPU, or less: weights, gradients, optimizer states and layers' activations, as if stages were
/// equal, less a tenth since they are not; no workspace, no logits. REQUIRES: a whole pipeline of operators.
[[nodiscard]] double least_memory_bytes(const Setup& setup);

}  // namespace moeline

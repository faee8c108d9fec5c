// The key `stages` of a scenario.
#pragma once

#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// Decoder layers of each stage of a pipeline: as listed; else in training empty, which is balanced, and in prefill and
/// decode as equal as they can be. Throws SpecError where there is no pipeline, or more stages than layers.
[[nodiscard]] std::vector<int> read_stages(const Spec& scenario, const Setup& setup);

}  // namespace moeline

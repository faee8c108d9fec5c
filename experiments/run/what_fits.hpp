// What would make a step of training fit into the GPUs' memory.
#pragma once

#include <string>

#include "experiments/run/run.hpp"

namespace moeline {

/// "training.recompute=full makes it fit: 61.2 GiB", or that none of the choices of `training` does. The timeline stays
/// that of the run: what is computed again would take longer. REQUIRES: a whole step of training that does not fit.
[[nodiscard]] std::string what_makes_it_fit(const Run& run);

}  // namespace moeline

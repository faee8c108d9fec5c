// A whole step of training, written out.
#pragma once

#include <string>

#include "experiments/cli/json.hpp"
#include "experiments/cli/run.hpp"

namespace moeline {

/// Adds "metrics", "stages" and "ranks". REQUIRES: the run is a whole step of training, as below.
void add_step(Json& json, const Run& run);

[[nodiscard]] std::string step_table(const Run& run);

}  // namespace moeline

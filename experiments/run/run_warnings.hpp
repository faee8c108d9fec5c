// What a reader of a result must know before believing it.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/run.hpp"

namespace moeline {

[[nodiscard]] std::vector<std::string> warnings_of(const Run& run);

}  // namespace moeline

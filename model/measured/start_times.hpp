// Dependencies that only the clock tells: a kernel starts, in layer after layer, just when one of another stream ends.
#pragma once

#include <vector>

#include "measured/dependencies.hpp"
#include "measured/launches.hpp"

namespace moeline {

/// Asked of kernels that stood still although everything in `known` allowed them to start.
[[nodiscard]] std::vector<Dependency> start_times(const Launches& launches, const std::vector<Dependency>& known);

}  // namespace moeline

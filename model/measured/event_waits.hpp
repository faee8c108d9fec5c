// What each cudaStreamWaitEvent of a trace waited for, read from where it stands and from what happened.
#pragma once

#include <vector>

#include "measured/dependencies.hpp"
#include "measured/launches.hpp"

namespace moeline {

/// One edge per call, or none where the call says nothing that is not known. The rules stand at dependencies().
[[nodiscard]] std::vector<Dependency> event_waits(const Launches& launches);

}  // namespace moeline

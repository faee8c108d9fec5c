// The parts that dependencies() puts together, each with a file of its own.
#pragma once

#include <vector>

#include "measured/dependencies.hpp"
#include "measured/launches.hpp"

namespace moeline {

/// A stream runs its kernels in their order. One that starts before an earlier one has ended (programmatic dependent
/// launch) starts as far into it as it did, and does not release it: what comes later waits for both.
[[nodiscard]] std::vector<Dependency> stream_order(const Trace& trace);

/// The order in which threads of the host made their calls, and the GPU events that they waited for in between: for
/// what a synchronising call names, else for what had been launched before it and ended last in it; for copies whose
/// call returns when they end; and, without any call, in a pause that ends where the kernel launched before it does,
/// if it does so in most layers.
/// Threads are programs as host_programs has them.
[[nodiscard]] std::vector<Dependency> host_order(const Launches& launches);

/// What each cudaStreamWaitEvent waited for, read from where it stands and from what happened: one edge per call, or
/// none where the call says nothing that is not known. The rules stand at dependencies().
[[nodiscard]] std::vector<Dependency> event_waits(const Launches& launches);

/// Waits that only the clock tells: a kernel that stood still although all that is `known` allowed it to start, and
/// started just when one of another stream ended. Asked of the same kernel of all layers at once where there are
/// layers, and of what no layer explains by itself.
[[nodiscard]] std::vector<Dependency> start_times(const Launches& launches, const std::vector<Dependency>& known);

}  // namespace moeline

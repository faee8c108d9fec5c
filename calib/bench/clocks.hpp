// How fast the device's clocks are: the SMs' under the load that matters, and the timer's that stamps are read from.
#pragma once

#include "bench.hpp"

namespace moeline::bench {

/// Cycles of an SM per microsecond of the global timer while large BF16 products keep the tensor cores busy: the load
/// that lowers it most.
[[nodiscard]] int sm_clock_mhz(const Bench& bench);

/// In what steps the timer that all SMs share advances.
[[nodiscard]] int timer_tick_ns();

}  // namespace moeline::bench

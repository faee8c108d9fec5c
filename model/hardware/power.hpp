// What a kernel draws, and the clock that a cap on power leaves.
#pragma once

#include "hardware/price.hpp"

namespace moeline {

/// Watts of a kernel at work, above rest. Dynamic power goes with the clock and the square of the voltage: of the
/// tensor cores by a power of the clock, the cube where voltage goes with it, of memory and copies not at all.
struct KernelPower {
  double clocked_w = 0;
  double other_w = 0;
};

/// By the shares of the tensor cores' and HBM's full speeds that the kernel reaches, or of the SMs that a transfer
/// holds. `clock`: of the SMs, over the boost clock. REQUIRES: the machine's power is known.
[[nodiscard]] KernelPower power_of(const Operator& op, const Price& price, double clock, const MachineFacts& machine);

/// A cap, the clock that power is known at, and what draws it: copies may be unknown.
[[nodiscard]] bool knows_power(const MachineFacts& machine);

/// What a GPU does for a while at one clock.
struct PowerLoad {
  double seconds = 0;
  double clocked_joules = 0, other_joules = 0;  ///< above rest
  double clocked_seconds = 0;                   ///< in which its SMs' clock is what counts
};

/// Mean watts of the same work at `clock` times the clock of the load: it draws less, and takes longer.
[[nodiscard]] double mean_power_w(const PowerLoad& load, double clock, const MachineFacts& machine);

/// The highest clock, over that of the load and at most `most`, at which its work stays under the machine's cap.
[[nodiscard]] double capped_clock(const PowerLoad& load, double most, const MachineFacts& machine);

}  // namespace moeline

// The clock that a GPU keeps to while it works, where its power is capped.
#pragma once

#include "experiments/run/run.hpp"

namespace moeline {

/// The machine's power is known, and kernels that may run were timed at a clock that they may not keep.
[[nodiscard]] bool clock_matters(const Setup& setup);

/// The setup at the clock that a cap on power leaves it. Each 5 ms have the highest clock, up to the boost clock, at
/// which they draw no more than the cap on average; all are priced at one, the mean by the time that goes by it. The
/// boost clock, where the scenario asks for burst or the clock does not matter. Found on one rank that waits for
/// nobody, of a pipeline on eight MoE layers; where ranks have unequal loads it is rank 0, and its clock stands for
/// all.
[[nodiscard]] Setup at_sustained_clock(const Setup& setup);

/// Mean watts of rank 0 over the run. REQUIRES: the machine's power is known.
[[nodiscard]] double power_w(const Run& run);

[[nodiscard]] double clock_mhz(const Setup& setup);

}  // namespace moeline

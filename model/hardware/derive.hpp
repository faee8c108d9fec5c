// A machine that nobody has measured: its facts, on the kernels of one that was.
#pragma once

#include <string>

#include "hardware/profile.hpp"

namespace moeline {

/// A profile as the YAML that load_profile reads back: facts of `machine`, whose own kernel sets do not count, on those
/// of `like`, a name in hwprofiles. A machine on its own kernels is itself. Throws SpecError where facts contradict
/// each other (check_facts).
[[nodiscard]] std::string derive(const HardwareProfile& machine, const std::string& like);

/// The machine of hwprofiles with whole kernel sets of its own that is nearest: of the same vendor, of the same
/// generation or else of the nearest before it, then by tensor cores, memory, SMs and links, each as a ratio. Not
/// `machine` itself. Throws SpecError where no machine is of its vendor.
[[nodiscard]] std::string nearest_measured(const HardwareProfile& machine);

/// FLOP of an SM in a clock, at such a peak of the tensor cores.
[[nodiscard]] double flop_per_clock(const MachineFacts& machine, double tflops);

/// Peaks of the tensor cores are a number of FLOP for each SM and clock: a power of two, or half as much again, within
/// 10 %; and narrower formats are no slower. Throws SpecError that names the facts.
void check_facts(const HardwareProfile& machine);

/// What of a family's curve comes from the measured machine, and what from the facts.
[[nodiscard]] std::string what_carries_over(const FamilyFit& fit);

}  // namespace moeline

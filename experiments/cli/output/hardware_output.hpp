// What a hardware profile knows, from where, and how well it fits, as JSON and as a person reads it.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/fields.hpp"
#include "hardware/profile.hpp"

namespace moeline {

/// Facts with their sources; kernel sets with families, what was measured of them, and errors. `here`: its facts.
[[nodiscard]] Fields<HardwareProfile> machine_fields(const MachineFacts& here);
/// Of each machine the facts and the names of its sets.
[[nodiscard]] Fields<std::vector<HardwareProfile>> machines_fields();
[[nodiscard]] std::string hardware_table(const HardwareProfile& profile);

/// "decode -8.0 %, prefill +1.2 %": how the set predicts the published throughput of its machine.
[[nodiscard]] std::string published_text(const KernelSet& set);

/// "44 constants: gemm_fp8 4, gemm_fp8_wgrad 2, ..."
[[nodiscard]] std::string count_constants(const KernelSet& set);

}  // namespace moeline

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

// How the families of kernels are covered on a machine: by which set's constants, or by none.

/// A fact in which the machine that a set was fitted on differs from this one.
struct FactDifference {
  std::string key;
  double fitted_on = 0, here = 0;
};
[[nodiscard]] std::vector<FactDifference> differences(const MachineFacts& fitted_on, const MachineFacts& here);

/// The sets that a scenario can name: the profile's own, or where it has none those that it carries over.
[[nodiscard]] std::vector<KernelSet> sets_to_choose(const HardwareProfile& profile);

/// Set of the constants that price a family, where none of them is of the set that its fit is of; else "".
[[nodiscard]] std::string other_constants(const std::string& family, const KernelSet& complete,
                                          const MachineFacts& facts);

/// Families that have no measurements of their own, by what prices them.
struct FamiliesWithoutFit {
  std::vector<std::string> by_casts;     ///< pass once over rows, as the casts that were measured
  std::vector<std::string> by_gemm_fp8;  ///< gemm_fp8's curve at BF16's peak
  std::vector<std::string> by_facts;
  std::vector<std::string> by_roofline;  ///< known to nobody
  std::vector<std::string> refused;      ///< the machine has no FP8 tensor cores
};
/// `complete`: with what the set borrows.
[[nodiscard]] FamiliesWithoutFit families_without_fit(const KernelSet& complete, const MachineFacts& facts);

}  // namespace moeline

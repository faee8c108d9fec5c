// A machine: facts, and kernel sets whose constants were fitted to measurements on it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hardware/constants.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// Per GPU; links per direction.
struct MachineFacts {
  double sms = 0;
  double fp8_tflops = 0;
  double bf16_tflops = 0;
  double hbm_GBps = 0;
  double nvlink_GBps = 0;
  double nic_GBps = 0;
  double gpus_per_node = 0;
  double memory_gib = 0;
  double nic_latency_us = 0;  ///< one 64-byte message to another leaf switch

  [[nodiscard]] bool computes_like(const MachineFacts& other) const {
    return sms == other.sms && fp8_tflops == other.fp8_tflops && bf16_tflops == other.bf16_tflops &&
           hbm_GBps == other.hbm_GBps;
  }
  [[nodiscard]] bool communicates_like(const MachineFacts& other) const {
    return sms == other.sms && hbm_GBps == other.hbm_GBps && nvlink_GBps == other.nvlink_GBps &&
           nic_GBps == other.nic_GBps && gpus_per_node == other.gpus_per_node;
  }
};

/// How well a family's curve meets the kernels it was fitted on, and where those lie.
struct FamilyFit {
  int kernels = 0;
  double smallest = 0, largest = 0;      ///< of size_of(op): FLOPs, bytes or items
  int fewest_sms = 0, most_sms = 0;      ///< SMs of the resident kernels
  int fewest_ranks = 0, most_ranks = 0;  ///< of transfers
  double median_abs_error = 0;           ///< of fitted / measured - 1, in sample
  double worst_error = 0;                ///< signed
  double mean_error = 0;                 ///< signed
};

/// One body of kernels at one date.
struct KernelSet {
  std::string name;
  std::string date;
  std::string source;
  MachineFacts fitted_on;  ///< the machine that the measurements were made on
  Constants constants{};
  std::map<std::string, FamilyFit> fits;  ///< by family name

  [[nodiscard]] double operator[](Constant c) const { return constants[static_cast<std::size_t>(c)]; }
};

struct HardwareProfile {
  std::string name;
  MachineFacts facts;
  std::map<std::string, std::string> sources;  ///< of each fact, by key
  std::vector<KernelSet> kernel_sets;          ///< newest last

  /// The set of that name, or with "" the newest. Throws SpecError with the nearest name.
  [[nodiscard]] const KernelSet& kernels(const std::string& set) const;
};

/// `reference`: a name in hwprofiles, or a path. `overrides`: "nic_GBps=100", machine facts by key.
/// Throws SpecError (file, line, key).
[[nodiscard]] HardwareProfile load_profile(const std::string& reference, const std::vector<std::string>& overrides = {},
                                           const std::filesystem::path& written_in = {});

/// The YAML that load_profile reads back. Constants are rounded to 5 digits, errors to 3.
[[nodiscard]] std::string to_yaml(const HardwareProfile& profile);

}  // namespace moeline

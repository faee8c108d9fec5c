// What is known of a body of kernels beside its measurements, by the name of its kernel set: rules, no constants.
#pragma once

#include <string>

#include "hardware/kernel_set.hpp"

namespace moeline {

struct KernelLibrary {
  std::string date;               ///< "2025-02", "2025-late"
  TileSet tiles = TileSet::wide;  ///< of its FP8 GEMMs
  // What stays inside a node goes over the NIC, too: in the normal mode, in the low-latency one.
  bool normal_over_nic = false, low_latency_over_nic = false;
  bool matches_sms_to_nic = false;  ///< it takes as many SMs as keep its NIC busy (get_theoretical_num_sms)
};

/// Throws SpecError for a name that is not NAME-DATE, the date from the first '-' on and with its year first.
[[nodiscard]] KernelLibrary library_of(const std::string& kernel_set);

}  // namespace moeline

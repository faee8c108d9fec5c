// The machines of a plan: `hardware`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/spec.hpp"

namespace moeline {

struct PlanHardware {
  std::string name;
  std::string kernels;           ///< empty: the newest set
  double usd_per_gpu_hour = 0;   ///< 0: not given
  std::vector<std::string> set;  ///< "nic_GBps=45"
};

/// `plan`: the whole file. Throws SpecError for a machine, kernel set or fact that is not known, and where several
/// machines are compared without their prices.
[[nodiscard]] std::vector<PlanHardware> read_plan_hardware(const Spec& plan, const std::filesystem::path& file);

}  // namespace moeline

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

/// The first lines of a scenario: schema, model, hardware, kernels. A model's path may hold what means something in
/// YAML.
[[nodiscard]] std::string scenario_head(const std::string& model, const PlanHardware& machine);
/// Its changed facts, as after simulate --set.
void add_facts(const PlanHardware& machine, std::vector<std::string>& set);

}  // namespace moeline

// The mappings of a scenario file, one function each. They refuse what is not modelled; nothing is ignored.
#pragma once

#include <string>
#include <vector>

#include "base/spec.hpp"
#include "schedules/scenario.hpp"

namespace moeline {

[[nodiscard]] Workload read_workload(const Spec& spec, const std::string& schedule);
[[nodiscard]] Comm read_comm(const Spec& spec, const Scenario& scenario, const Architecture& model,
                             const MachineFacts& machine);
[[nodiscard]] Parallelism read_parallelism(const Spec& spec, const Scenario& scenario, const Architecture& model,
                                           int gpus_per_node);
[[nodiscard]] Routing read_routing(const Spec& spec, const Scenario& scenario, const Architecture& model);

/// One of the `modelled` values, the first by default; the `real` ones stand for what this version does not model.
[[nodiscard]] std::string modelled(const Spec& spec, const std::string& key, const std::vector<std::string>& values,
                                   const std::vector<std::string>& real);

}  // namespace moeline

// Why a run or a trace takes as long as it does, as JSON or tables.
#pragma once

#include <string>

#include "experiments/explain/explanation.hpp"
#include "experiments/explain/modules.hpp"
#include "experiments/explain/step_kernels.hpp"

namespace moeline {

[[nodiscard]] std::string to_json(const Explanation& explanation, const TaskGraph& graph,
                                  const std::optional<ModuleTable>& modules, const std::optional<StepKernels>& kernels);
[[nodiscard]] std::string to_table(const std::string& title, const Explanation& explanation, const TaskGraph& graph);
/// The tree of modules.
[[nodiscard]] std::string to_table(const std::string& title, const ModuleTable& table);
/// Kernels and their prices. `span_us`: of the step.
[[nodiscard]] std::string to_table(const std::string& title, const StepKernels& step, double span_us);

[[nodiscard]] std::string explain_schema();

}  // namespace moeline

// The kernels of a step and their prices, as JSON or a table.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/output/json.hpp"
#include "experiments/explain/step_kernels.hpp"

namespace moeline {

/// What speaks against a price, and what its correction made of it.
[[nodiscard]] std::string note_of(const Price& price);

/// The key "kernels".
void add_kernels(Json& json, const StepKernels& step);
/// `span_us`: of the step.
[[nodiscard]] std::string to_table(const std::string& title, const StepKernels& step, double span_us);

}  // namespace moeline

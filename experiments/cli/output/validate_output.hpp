// What validate prints.
#pragma once

#include <string>

#include "experiments/cli/output/baseline_output.hpp"
#include "experiments/validate/validation.hpp"

namespace moeline {

/// `baseline`: null where none was asked for.
[[nodiscard]] std::string to_json(const Validation& validation, const BaselineVerdict* baseline = nullptr);
[[nodiscard]] std::string to_table(const Validation& validation);
[[nodiscard]] std::string validate_schema();

/// Of one study of served models, a part of these.
[[nodiscard]] Fields<ScoredServed> served_fields();
[[nodiscard]] std::string to_table(const ScoredServed& scored);

}  // namespace moeline

// What validate prints.
#pragma once

#include <string>

#include "experiments/validate/validation.hpp"

namespace moeline {

[[nodiscard]] std::string to_json(const Validation& validation);
[[nodiscard]] std::string to_table(const Validation& validation);

}  // namespace moeline

// What fitting a serving stack's tables gave.
#pragma once

#include <string>

#include "calib/fit/stack_tables.hpp"

namespace moeline {

/// Families with their errors, and what was left out.
[[nodiscard]] std::string stack_text(const StackCalibration& calibration);

/// The rows of each family that are missed most, predicted without their slice.
[[nodiscard]] std::string stack_residuals_text(const StackCalibration& calibration);

}  // namespace moeline

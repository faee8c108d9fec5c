// What fitting a serving stack's tables gave, as text and as a page.
#pragma once

#include <string>

#include "calib/fit/stack_tables.hpp"
#include "experiments/page/page.hpp"

namespace moeline {

/// Families with their errors, and what was left out.
[[nodiscard]] std::string stack_text(const StackCalibration& calibration);

/// The rows of each family that are missed most, how far the tables agree with each other, and what to measure next.
[[nodiscard]] std::string stack_report_text(const StackCalibration& calibration);

/// All of it; the families are the points, to be sorted and plotted. `machine`: the profile's name.
[[nodiscard]] Page stack_page(const StackCalibration& calibration, const std::string& machine);

}  // namespace moeline

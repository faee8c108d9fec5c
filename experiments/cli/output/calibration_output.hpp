// What `moeline calibrate` prints.
#pragma once

#include <string>

#include "calib/fit/calibrate.hpp"
#include "calib/fit/stack_tables.hpp"
#include "experiments/page/page.hpp"
#include "experiments/validate/host_speed.hpp"

namespace moeline {

/// Constants, errors by family, rows that the curves miss, and what to measure next.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);

/// Every observation with its fitted and its left-out value.
[[nodiscard]] std::string residuals_text(const Calibration& calibration);

/// Of calib/bench's tables: what was skipped, the shares of the machine's peaks that kernels reach, and contention
/// beside the engine's law.
[[nodiscard]] std::string benches_text(const Calibration& calibration, const MachineFacts& machine);

/// The speed, and each step with its own and with that of all.
[[nodiscard]] std::string host_text(const HostCalibration& host);

// What fitting a serving stack's tables gave, as text and as a page.

/// Families with their errors, and what was left out.
[[nodiscard]] std::string stack_text(const StackCalibration& calibration);

/// The rows of each family that are missed most, how far the tables agree with each other, and what to measure next.
[[nodiscard]] std::string stack_report_text(const StackCalibration& calibration);

/// All of it; the families are the points, to be sorted and plotted. `machine`: the profile's name.
[[nodiscard]] Page stack_page(const StackCalibration& calibration, const std::string& machine);

}  // namespace moeline

// What `moeline calibrate` prints.
#pragma once

#include "calib/fit/calibrate.hpp"

namespace moeline {

/// Constants, errors by family, rows that the curves miss, and what to measure next.
void print_calibration(const Calibration& calibration);

/// Every observation with its fitted and its left-out value.
void print_residuals(const Calibration& calibration);

/// Of calib/bench's tables: what was skipped, the shares of the machine's peaks that kernels reach, and contention
/// beside the engine's law.
void print_benches(const Calibration& calibration, const MachineFacts& machine);

}  // namespace moeline

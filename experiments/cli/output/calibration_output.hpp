// What `moeline calibrate` prints.
#pragma once

#include <string>

#include "calib/fit/calibrate.hpp"

namespace moeline {

/// Constants, errors by family, rows that the curves miss, and what to measure next.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);

/// Every observation with its fitted and its left-out value.
[[nodiscard]] std::string residuals_text(const Calibration& calibration);

/// Of calib/bench's tables: what was skipped, the shares of the machine's peaks that kernels reach, and contention
/// beside the engine's law.
[[nodiscard]] std::string benches_text(const Calibration& calibration, const MachineFacts& machine);

}  // namespace moeline

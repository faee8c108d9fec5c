// Measurements in, kernel set out.
#pragma once

#include <filesystem>
#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

struct Calibration {
  KernelSet kernels;
  std::vector<Observation> observations;
};

/// Fits the set `deepseek-2025-02` to the given CSV files (told apart by their columns) and the given layers of the
/// training profile. Constants are rounded as they stand in a profile, so that what is written is what was scored.
[[nodiscard]] Calibration calibrate(const std::vector<std::filesystem::path>& files, const std::vector<int>& layers,
                                    const Architecture& model, const MachineFacts& machine);

}  // namespace moeline

// Measurements in, kernel set out.
#pragma once

#include <filesystem>
#include <vector>

#include "architecture/architecture.hpp"
#include "calib/fit/assess.hpp"
#include "calib/fit/bench_table.hpp"

namespace moeline {

struct CalibrationRequest {
  std::string kernels = "deepseek-2025-02";  ///< name of the set, NAME-DATE (2025-02, 2025-late)
  std::vector<int> layers = {0, 1};          ///< of the training profile
  std::string left_out{};                    ///< fold of observations that the fit must not see; "": none
  std::vector<std::string> without{};        ///< keys of calib/bench's tables that are not to be fitted
  std::vector<std::string> given{};          ///< groups of constants that are not fitted but those of `lender`
  Constants lender{};
  bool by_name_only = false;    ///< as in KernelSet
  bool cross_validate = false;  ///< score families whose observations have folds on left-out folds
};

struct Calibration {
  KernelSet kernels;
  std::vector<Observation> observations;
  Predictions fitted;               ///< by `kernels`
  Predictions left_out;             ///< by fits that did not see the observation's fold; empty without cross-validation
  std::vector<BenchTable> benches;  ///< those of the files that calib/bench wrote
};

/// Fits one kernel set to the given CSV files, told apart by their columns. Constants are rounded as they stand in a
/// profile, so that what is written is what was scored. Throws SpecError for a name without a date, for a fold that
/// there is not, and for tables that cannot be read.
[[nodiscard]] Calibration calibrate(const std::vector<std::filesystem::path>& files, const CalibrationRequest& request,
                                    const Architecture& model, const MachineFacts& machine);

}  // namespace moeline

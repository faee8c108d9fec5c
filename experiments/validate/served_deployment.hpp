// What rows of a study run on: everything of their scenarios but the workload.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/validate/served_study.hpp"

namespace moeline {

/// As assignments, of GPUs that share the work so. Throws SpecError where the study has no machine, kernels or model
/// for the row.
[[nodiscard]] std::vector<std::string> deployment_of(const ServedStudy& study, const ServedRow& row,
                                                     const ServedSplit& split);

/// Rows that are not left out, those of equal deployments together.
struct DeployedRows {
  std::vector<std::pair<std::vector<std::string>, std::vector<std::size_t>>> deployments;  ///< and rows of the study
  std::vector<std::pair<std::size_t, std::string>> refused;                                ///< rows, and why
};
[[nodiscard]] DeployedRows rows_by_deployment(const ServedStudy& study);

}  // namespace moeline

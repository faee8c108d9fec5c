// What rows of a study run on: everything of their scenarios but the workload.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/parallel.hpp"
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

/// One for each row, in their order; where a scenario is refused `refused` says why. `begin(deployment, first row)` is
/// asked for once for each deployment, on all cores, and gives what predicts a row of it.
template <class Prediction, class Begin>
[[nodiscard]] std::vector<Prediction> predict_rows(const ServedStudy& study, const Begin& begin) {
  std::vector<Prediction> predictions(study.rows.size());
  const DeployedRows deployed = rows_by_deployment(study);
  for (const auto& [row, why] : deployed.refused) predictions[row].refused = why;
  parallel_for(deployed.deployments.size(), cores(), [&](std::size_t at) {
    const auto& [set, rows] = deployed.deployments[at];
    const auto predict = begin(set, study.rows[rows.front()]);
    for (const std::size_t row : rows) {
      try {
        predictions[row] = predict(study.rows[row]);
      } catch (const SpecError& error) {
        predictions[row].refused = error.reason();
      }
    }
  });
  return predictions;
}

}  // namespace moeline

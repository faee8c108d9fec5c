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

// What a served model's requests would get: TPOT of a closed loop, by the steps that its batch takes.

struct ServedPrediction {
  std::string refused{};  ///< why there is none: what the scenario was refused with; ""
  double tpot_ms = 0;
  double batch = 0;         ///< requests of an attention group that decode at once, on average
  double mixed_share = 0;   ///< of the steps, that also prefill; 0 where prefill runs elsewhere
  double chunk_tokens = 0;  ///< new tokens of prompts in such a step
};

/// Of each row that is not left out, in their order.
///
/// The batch of an attention group is Little's law: concurrency per group, times the share of a request's time in which
/// it decodes, output x TPOT / (TTFT + output x TPOT), with the predicted TPOT and the measured TTFT. Where prefill
/// runs elsewhere TPOT is a step of decode. Colocated, batch / output prompts arrive at each step: one that has some
/// prefills all of them, a chunk of at most `step_tokens`; by chance 1 - exp(-arrivals) of the steps have. TPOT is the
/// mean over mixed steps and those of decode alone. Contexts are input + output / 2 on average.
[[nodiscard]] std::vector<ServedPrediction> predict_served(const ServedStudy& study);

// Rows of served models request by request: TTFT and TPOT of a closed loop, with no measured figure in it.

struct ServedLoopPrediction {
  std::string refused{};      ///< why there is none; ""
  double ttft_ms = 0;         ///< mean of all requests, as the benchmark's client has it
  double tpot_ms = 0;         ///< the same
  double steady_ttft_ms = 0;  ///< mean of those that come once others have ended
  double first_ttft_ms = 0;   ///< mean of those that all come at once
};

/// Of each row that is not left out, in their order. All of the concurrency come at once, then each comes as another
/// ends, until there were as many as the study's loop says; lengths are drawn. Colocated steps have prompts beside
/// answers; where others prefill, `step_tokens` are those of their steps, and caches go over the NIC at its peak.
/// Steps are simulated on a grid (experiments/serve). REQUIRES: the study has a loop.
[[nodiscard]] std::vector<ServedLoopPrediction> predict_served_loop(const ServedStudy& study);

}  // namespace moeline

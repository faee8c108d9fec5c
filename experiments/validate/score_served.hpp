// Predictions of served models held against the measured rows, by how their ranks share the work.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calib/fit/assess.hpp"
#include "experiments/validate/predict_served.hpp"

namespace moeline {

/// Of rows served request by request.
struct ServedLoopErrors {
  std::size_t rows = 0, null_rows = 0;
  ErrorSummary tpot, tpot_of_step;  ///< and of the step that a batch takes, of the same rows
  ErrorSummary ttft, ttft_null;     ///< null: as of TPOT
};

/// Rows that are summed up together.
struct ServedGroup {
  std::string name;
  std::vector<std::size_t> rows;  ///< of the study
  ErrorSummary errors;
  std::size_t null_rows = 0;  ///< that others are like
  ErrorSummary null_errors;   ///< of the null model: the median of the other rows of the same model, format, class,
                              ///< place of prefill and lengths
  ServedLoopErrors loop{};
};

struct ScoredServed {
  ServedStudy study;
  std::vector<ServedPrediction> predictions;  ///< of each row
  std::vector<ServedLoopPrediction> loops;    ///< of each row; none: the study has no loop
  std::vector<ServedGroup> by_class, by_model;
  std::map<std::string, int> left_out, refused;  ///< rows by why

  [[nodiscard]] bool is_scored(std::size_t row) const {
    return study.rows[row].left_out.empty() && predictions[row].refused.empty();
  }
  [[nodiscard]] bool is_looped(std::size_t row) const { return !loops.empty() && loops[row].refused.empty(); }
  [[nodiscard]] double error(std::size_t row) const { return predictions[row].tpot_ms / study.rows[row].tpot_ms - 1; }
};

[[nodiscard]] ScoredServed score(ServedStudy study);

}  // namespace moeline

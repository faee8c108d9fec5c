// Which of a study's alternatives wins where: the end of its table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/store.hpp"

namespace moeline {

/// One alternative wins at all values of the axis that the study has from one to another.
struct SweptStretch {
  std::string beside;  ///< the other axes: "workload.kv_len = 4096"; "" where there are none
  std::string from, to;
  std::string winner;  ///< "": a tie, or none may win
  bool is_tie = false;
  std::optional<double> ratio{};  ///< by how much at the least, over the second where there is one
};

struct SweptTurns {
  std::string by, along, among;  ///< metric, the axis of numbers, that of alternatives
  bool knows_memory = true;      ///< which points fit
  std::vector<SweptStretch> stretches;
};

/// Of a study with an axis of alternatives (words that one can choose, or axes that go together and are of no workload,
/// model or machine) and one of numbers, by its metric with a direction, tokens_per_s_per_gpu before others. Points
/// that failed or do not fit memory lose. Without stretches where the study has no such axes or metric.
[[nodiscard]] SweptTurns swept_turns(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string turns_table(const SweptTurns& turns);

/// The best of all points that fit memory and keep the study's limits, by the same metric.
struct SweptBest {
  std::string by;
  std::size_t point = 0;
  double value = 0;
};
/// None: the study has no metric with a direction, or no such point.
[[nodiscard]] std::optional<SweptBest> swept_best(const Study& study, const std::vector<PointResult>& results);
/// A line, with its end; "" where there is neither a best point nor a limit.
[[nodiscard]] std::string best_line(const Study& study, const std::optional<SweptBest>& best);

}  // namespace moeline

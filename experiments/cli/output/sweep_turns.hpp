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
/// model or machine) and one of numbers, by its metric with a
/// direction, tokens_per_s_per_gpu before others. Points that failed or do not fit memory lose. Without stretches where
/// the study has no such axes or metric.
[[nodiscard]] SweptTurns swept_turns(const Study& study, const std::vector<PointResult>& results);
[[nodiscard]] std::string turns_table(const SweptTurns& turns);

}  // namespace moeline

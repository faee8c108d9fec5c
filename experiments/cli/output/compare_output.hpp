// How `moeline compare` says how two timelines differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "timeline/compared_steps.hpp"
#include "timeline/difference.hpp"

namespace moeline {

struct ComparisonReport {
  std::string a, b;  ///< files
  Score score;
  std::vector<Null> nulls;
  std::vector<PhaseDifference> differences;  ///< largest first
  std::optional<StepPairs> steps;            ///< of two traces with steps: the phases are those of their median steps
};

[[nodiscard]] std::string to_json(const ComparisonReport& report);
[[nodiscard]] std::string to_table(const ComparisonReport& report);
[[nodiscard]] std::string compare_schema();

}  // namespace moeline

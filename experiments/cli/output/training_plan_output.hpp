// An answer to a plan for training as a table, JSON, CSV and a page.
#pragma once

#include <string>
#include <vector>

#include "experiments/page/page.hpp"
#include "experiments/plan_training/search_layouts.hpp"

namespace moeline {

struct TrainingPlanResult {
  const TrainingJob& job;
  const TrainingAnswer& answer;
  const std::vector<LayoutSensitivity>& sensitivities;  ///< empty: not asked for
};

[[nodiscard]] std::string training_plan_table(const TrainingPlanResult& result);
[[nodiscard]] std::string training_plan_json(const TrainingPlanResult& result);
/// A row for every layout that was searched and fits: confirmed ones first.
[[nodiscard]] std::string training_plan_csv(const TrainingPlanResult& result);
/// What the table has, and every layout that was searched: its speed against its memory.
[[nodiscard]] Page training_plan_page(const TrainingPlanResult& result);

}  // namespace moeline

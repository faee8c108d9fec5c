// An answer to a plan for training as a table, JSON, CSV and a page.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "experiments/page/page.hpp"
#include "experiments/plan_training/megatron_flags.hpp"
#include "experiments/plan_training/search_layouts.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {

struct TrainingPlanResult {
  const TrainingJob& job;
  const TrainingAnswer& answer;
  const std::vector<LayoutSensitivity>& sensitivities;  ///< empty: not asked for
};

[[nodiscard]] std::string training_plan_table(const TrainingPlanResult& result);
[[nodiscard]] std::string training_plan_json(const TrainingPlanResult& result);
[[nodiscard]] Describe training_plan_described();
/// A row for every layout that was searched and fits: confirmed ones first.
[[nodiscard]] std::string training_plan_csv(const TrainingPlanResult& result);
/// What the table has, and every layout that was searched: its speed against its memory.
[[nodiscard]] Page training_plan_page(const TrainingPlanResult& result);

// What the terminal and the page both show.

/// Of so many tokens.
[[nodiscard]] double gpu_hours(const LayoutPoint& point, double tokens);
/// Of the whole training; 0 where the job does not say of how many tokens.
[[nodiscard]] double days(const LayoutPoint& point, const TrainingJob& job);
/// US dollars, of the job's tokens or, where it says none, of 10^12; 0 where the machine has no price.
[[nodiscard]] double usd_of(const TrainingJob& job, const LayoutPoint& point);

[[nodiscard]] std::vector<std::string> job_lines(const TrainingJob& job);
[[nodiscard]] std::string searched_line(const TrainingAnswer& answer);
[[nodiscard]] TextTable best_table(const TrainingJob& job, const TrainingAnswer& answer);
/// Of each of the best, what its step has more or less than the first one's.
[[nodiscard]] TextTable reasons_table(const TrainingAnswer& answer);
/// The leanest of those that do not fit.
[[nodiscard]] TextTable nearest_table(const TrainingJob& job, const TrainingAnswer& answer);
/// How long the whole training takes, at what cost, and what binds it.
[[nodiscard]] std::vector<std::string> answer_lines(const TrainingJob& job, const LayoutPoint& point);
[[nodiscard]] TextTable sensitivity_table(const TrainingPlanResult& result);
/// REQUIRES: the layout is a scenario.
[[nodiscard]] MegatronFlags flags_of(const TrainingJob& job, const Layout& layout);
/// As a command with comments.
[[nodiscard]] std::string flags_text(const TrainingJob& job, const Layout& layout);

}  // namespace moeline

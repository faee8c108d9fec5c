// The parts of an answer to a plan for training, which the terminal and the page both show.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "experiments/cli/output/training_plan_output.hpp"
#include "experiments/plan_training/megatron_flags.hpp"

namespace moeline {

/// Of so many tokens.
[[nodiscard]] double gpu_hours(const LayoutPoint& point, double tokens);
/// Of the whole training. REQUIRES: the job says of how many tokens.
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

// An answer to a plan as a table, JSON, CSV and a page of plots.
#pragma once

#include <string>

#include "experiments/page/page.hpp"
#include "experiments/plan/confirm.hpp"
#include "experiments/plan/course.hpp"
#include "experiments/plan/sensitivity.hpp"

namespace moeline {

struct PlanResult {
  const Plan& plan;
  const Answer& answer;
  const std::vector<Sensitivity>& sensitivities;  ///< empty: not asked for
  const std::optional<Confirmation>& confirmed;   ///< of the best deployment; none: not asked for
  const std::optional<Course>& course;            ///< of the best deployment; none: the load has none
};

/// Of the machine that a deployment is on, as the plan changes them.
[[nodiscard]] MachineFacts facts_of(const Plan& plan, const Deployment& deployment);

[[nodiscard]] std::string plan_table(const PlanResult& result);
[[nodiscard]] std::string plan_json(const PlanResult& result);
/// Of answers for serving and for training.
[[nodiscard]] std::string plan_schema();
/// A row for every deployment.
[[nodiscard]] std::string plan_csv(const PlanResult& result);
/// What the table has, and every batch size of every way to decode: tokens per second and user against those per second
/// and GPU, with a front for each machine and the limit on TPOT.
[[nodiscard]] Page plan_page(const PlanResult& result);

}  // namespace moeline

// A step of prefill or decode whose phases stand in an overlap plan: schedules/*.yaml.
#pragma once

#include "schedules/lowering/program.hpp"
#include "schedules/scenario/overlap_plan.hpp"

namespace moeline {

[[nodiscard]] Program planned_step(const Setup& setup);

/// The scenario's plan, and what any such plan must place.
[[nodiscard]] OverlapPlan inference_plan(const Setup& setup);
[[nodiscard]] PlanContents inference_plan_contents(const Setup& setup);

}  // namespace moeline

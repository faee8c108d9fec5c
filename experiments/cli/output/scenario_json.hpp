// A scenario as it ran: given back to `simulate`, it gives the same result.
#pragma once

#include "experiments/report/json.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// With every default resolved, under the key "scenario".
void add_scenario(Json& json, const Setup& setup);
/// Of a pipeline of given slots: what enters, and no more.
void add_pipeline_scenario(Json& json, const Scenario& scenario);

}  // namespace moeline

// A scenario's pipeline: what each of its ranks does, and the program of slots of given length.
#pragma once

#include <vector>

#include "schedules/lowering/program.hpp"
#include "schedules/pipeline/slot.hpp"

namespace moeline {

/// What each rank does, in order.
[[nodiscard]] std::vector<RankSlots> pipeline_slots(const Scenario& scenario);

/// One task for each slot, as long as the scenario says; nothing else takes time. REQUIRES: it gives slot costs.
[[nodiscard]] Program given_slots(const Scenario& scenario);

}  // namespace moeline

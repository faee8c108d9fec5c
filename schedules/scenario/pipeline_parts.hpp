// What a scenario says of a whole pipeline, one function for each part.
#pragma once

#include <string>

#include "base/spec.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

inline constexpr int kMostPipelineRanks = 1 << 12;
inline constexpr int kMostChunks = 1 << 10;  ///< of the model on a rank

[[nodiscard]] Parallelism read_pipeline_parallelism(const Spec& spec, const ScheduleKind& schedule);
/// The keys of parallelism that pipelines alone have: virtual_pp, and what the schedule demands of pp.
void read_pipeline_keys(const Spec& spec, const ScheduleKind& schedule, Parallelism& parallelism);
/// `spec`: the whole file. REQUIRES: the scenario has its schedule, workload and overlap.
[[nodiscard]] SlotCosts read_slot_costs(const Spec& spec, const Scenario& scenario);
/// What the schedule demands of the number of ranks and micro-batches, and a bound on the size of it all.
void check_pipeline(const Spec& spec, const Scenario& scenario);

}  // namespace moeline

#include "schedules/pipeline/pipeline.hpp"

#include "schedules/pipeline/lower_slots.hpp"
#include "schedules/pipeline/pipelines.hpp"

namespace moeline {
namespace {

SlotTimes times_of(const SlotCosts& costs) {
  const auto from_ms = [](double ms) { return from_us(ms * 1e3); };
  return {.f = from_ms(costs.f), .b = from_ms(costs.b), .w = from_ms(costs.w), .f_and_b = from_ms(costs.f_and_b)};
}

}  // namespace

std::vector<RankSlots> pipeline_slots(const Scenario& s) {
  const PipelineShape shape{.ranks = s.parallelism.pp,
                            .micro_batches = micro_batches(s),
                            .chunks = s.parallelism.virtual_pp,
                            .combined = s.kind().may_combine() && overlaps_passes(s)};
  return slots_of(s.schedule, shape);
}

Program given_slots(const Scenario& scenario) {
  return {.graph = lower_slots(pipeline_slots(scenario), times_of(*scenario.slot_costs)),
          .provenance = {},
          .constants = {}};
}

}  // namespace moeline

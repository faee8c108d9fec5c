#include "schedules/pipeline/lower_slots.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/schedules.hpp"

namespace moeline {
namespace {

SlotTimes times_of(const SlotCosts& costs) {
  const auto from_ms = [](double ms) { return from_us(ms * 1e3); };
  return {.f = from_ms(costs.f), .b = from_ms(costs.b), .w = from_ms(costs.w), .f_and_b = from_ms(costs.f_and_b)};
}

}  // namespace

int micro_batches(const Scenario& scenario) {
  const auto at_once = static_cast<std::int64_t>(scenario.parallelism.dp) * scenario.workload.micro_batch_size;
  return static_cast<int>(scenario.workload.global_batch_size / at_once);
}

std::vector<RankSlots> pipeline_slots(const Scenario& s) {
  const PipelineShape shape{
      .ranks = s.parallelism.pp, .micro_batches = micro_batches(s), .chunks = s.parallelism.virtual_pp};
  const PipelineSchedule* schedule = find_pipeline(s.schedule);
  MOELINE_CHECK(schedule != nullptr, s.schedule);
  std::vector<RankSlots> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) ranks.push_back(schedule->slots(rank, shape));
  return ranks;
}

Program pipeline(const Setup& setup) {
  const Scenario& s = setup.scenario;
  if (!s.slot_costs) return training_step(setup);
  return {.graph = lower_slots(pipeline_slots(s), times_of(*s.slot_costs)), .provenance = {}, .constants = {}};
}

}  // namespace moeline

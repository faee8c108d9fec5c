#include "schedules/pipeline/pipelines.hpp"

#include <map>

#include "base/error.hpp"
#include "schedules/pipeline/lower_slots.hpp"

namespace moeline {

RankSlots slots_of(const std::string& schedule, int rank, const PipelineShape& shape) {
  static const std::map<std::string, RankSlots (*)(int, const PipelineShape&)> kSchedules = {
      {"gpipe", gpipe},        {"1f1b", one_f_one_b}, {"interleaved-1f1b", interleaved_one_f_one_b},
      {"zb1p", zb1p},          {"zb-h2", zb_h2},      {"zbv", zbv},
      {"v-half", v_half},      {"v-min", v_min},      {"dualpipe", dualpipe},
      {"dualpipev", dualpipev}};
  const auto found = kSchedules.find(schedule);
  MOELINE_CHECK(found != kSchedules.end(), schedule);
  return found->second(rank, shape);
}

std::vector<RankSlots> slots_of(const std::string& schedule, const PipelineShape& shape) {
  std::vector<RankSlots> ranks;
  for (int rank = 0; rank < shape.ranks; ++rank) ranks.push_back(slots_of(schedule, rank, shape));
  return ranks;
}

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

#include "schedules/pipeline/pipelines.hpp"

#include <map>

#include "base/error.hpp"

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

}  // namespace moeline

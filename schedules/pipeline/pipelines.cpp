#include "schedules/pipeline/pipelines.hpp"

#include <algorithm>
#include <vector>

namespace moeline {

std::span<const PipelineSchedule> pipeline_schedules() {
  static const std::vector<PipelineSchedule> kSchedules = {
      {"gpipe", gpipe}, {"1f1b", one_f_one_b},  {"interleaved-1f1b", interleaved_one_f_one_b},
      {"zb1p", zb1p},   {"dualpipe", dualpipe}, {"dualpipev", dualpipev}};
  return kSchedules;
}

const PipelineSchedule* find_pipeline(const std::string& name) {
  const auto all = pipeline_schedules();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PipelineSchedule& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace moeline

#include "schedules/pipeline/pipelines.hpp"

#include <algorithm>
#include <vector>

namespace moeline {

std::span<const PipelineSchedule> pipeline_schedules() {
  static const std::vector<PipelineSchedule> kSchedules = {
      {"gpipe", "all forward passes, then all backward passes", gpipe},
      {"1f1b", "one forward, one backward: a rank keeps the activations of few micro-batches", one_f_one_b},
      {"interleaved-1f1b", "1f1b with several chunks of the model on each rank", interleaved_one_f_one_b},
      {"zb1p", "weight gradients apart, which fill the end of the pipeline", zb1p},
      {"dualpipe", "micro-batches from both ends, F of one direction overlapped with B of the other", dualpipe},
      {"dualpipev", "one half of DualPipe's ranks with the work of both", dualpipev}};
  return kSchedules;
}

const PipelineSchedule* find_pipeline(const std::string& name) {
  const auto all = pipeline_schedules();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PipelineSchedule& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace moeline

// Whole steps of training, small ones and DeepSeek-V3's.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"

namespace moeline::testing {

inline std::filesystem::path step_scenario() {
  return std::filesystem::path(MOELINE_SOURCE_DIR) / "experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml";
}

inline Run run_step(std::vector<std::string> assignments = {}) {
  return run_scenario(load_setup(step_scenario(), assignments));
}

/// Four ranks with two MoE layers per stage, all stages alike, ranks in step: `more` overrides.
inline std::vector<std::string> small_step(const std::string& schedule, std::vector<std::string> more = {}) {
  std::vector<std::string> set = {"schedule=" + schedule,
                                  "parallelism={pp: 4, ep: 64, dp: 64}",
                                  "workload.global_batch_size=768",  // 12 micro-batches
                                  "layers=8",
                                  "jitter=none",
                                  "speed_spread=0",
                                  "routing={distribution: balanced}"};
  if (schedule == "interleaved-1f1b") set.push_back("parallelism.virtual_pp=2");
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

inline Run run_small(const std::string& schedule, std::vector<std::string> more = {}) {
  return run_step(small_step(schedule, std::move(more)));
}

inline const std::vector<std::string> kSchedules = {"gpipe",  "1f1b",  "interleaved-1f1b", "zb1p",     "zb-h2", "zbv",
                                                    "v-half", "v-min", "dualpipe",         "dualpipev"};

/// Each rank has two stages, one on the way down and one on the way up.
inline bool in_a_v(const std::string& schedule) { return schedule_named(schedule).pipeline->stages_per_rank == 2; }

inline double ms(Time time) { return to_us(time) / 1e3; }
inline double step_ms(const Run& run) { return ms(run.metrics.span); }

/// The median of the slots of this name.
inline double median_ms(const Run& run, const std::string& slot) {
  std::vector<double> lengths;
  for (const PhaseTimes& row : run.phases) {
    if (row.phase == slot) lengths.push_back(ms(row.end - row.start));
  }
  REQUIRE(!lengths.empty());
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2), lengths.end());
  return lengths[lengths.size() / 2];
}

}  // namespace moeline::testing

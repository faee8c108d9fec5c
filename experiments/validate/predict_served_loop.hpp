// Rows of served models request by request: TTFT and TPOT of a closed loop, with no measured figure in it.
#pragma once

#include <string>
#include <vector>

#include "experiments/validate/served_study.hpp"

namespace moeline {

struct ServedLoopPrediction {
  std::string refused{};      ///< why there is none; ""
  double ttft_ms = 0;         ///< mean of all requests, as the benchmark's client has it
  double tpot_ms = 0;         ///< the same
  double steady_ttft_ms = 0;  ///< mean of those that come once others have ended
  double first_ttft_ms = 0;   ///< mean of those that all come at once
};

/// Of each row that is not left out, in their order. All of the concurrency come at once, then each comes as another
/// ends, until there were as many as the study's loop says; lengths are drawn. Colocated steps have prompts beside
/// answers; where others prefill, `step_tokens` are those of their steps, and caches go over the NIC at its peak.
/// Steps are simulated on a grid (experiments/serve). REQUIRES: the study has a loop.
[[nodiscard]] std::vector<ServedLoopPrediction> predict_served_loop(const ServedStudy& study);

}  // namespace moeline

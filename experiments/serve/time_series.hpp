// How a run of requests goes along time.
#pragma once

#include <vector>

#include "experiments/serve/serve_log.hpp"

namespace moeline {

/// A slice of the run. Of requests: of those that come in it; 0 where none do.
struct ServeSlice {
  double begin_ms = 0, end_ms = 0;
  double arrivals_per_s = 0, output_tokens_per_s = 0;  ///< of all GPUs
  double waiting = 0, running = 0;                     ///< requests, on average
  double ttft_p50_ms = 0, ttft_p99_ms = 0, tpot_p50_ms = 0;
  double replicas_on = 0;  ///< that answer, on average; 0 where none is ever off
};

/// Equally long ones, from the first arrival to the last end. REQUIRES: count is above 0, and there is a request.
[[nodiscard]] std::vector<ServeSlice> time_series(const ServeLog& log, int count);

}  // namespace moeline

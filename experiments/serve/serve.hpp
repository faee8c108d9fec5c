// A scenario whose workload is requests: what each of them waits for, and what a replica gets done.
#pragma once

#include <string>
#include <vector>

#include "experiments/serve/step_grid.hpp"

namespace moeline {

/// Of some requests.
struct Quantiles {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0;
};
[[nodiscard]] Quantiles quantiles_of(std::vector<double> values);

struct RequestTimes {
  std::size_t requests = 0;
  Quantiles queue_ms, ttft_ms, tpot_ms, total_ms;  ///< queue: before its first step; TPOT where answers have two tokens
};

struct ServeResult {
  ServeWorkload workload;
  Setup setup;  ///< of a step with one request
  ReplicaShape shape;
  ServeLog log;
  RequestTimes first;   ///< of a closed loop, those that all come at once
  RequestTimes steady;  ///< those that come once others have ended, and before the last have come; else all
  double output_tokens_per_s = 0, total_tokens_per_s = 0;  ///< of each GPU, in that time; all: cached tokens left out
  double mean_waiting = 0, mean_running = 0;               ///< requests
  double prompt_share = 0;                                 ///< of the time, steps in which prompts are computed
  /// Between steps that were simulated, the largest error of those that were simulated once more to know.
  double interpolation_error = 0;
  std::size_t simulated_steps = 0;
};

/// Throws SpecError: of the scenario, or of a step that it asks for.
[[nodiscard]] ServeResult serve(const Spec& scenario, const std::vector<std::string>& assignments);

/// Whether the scenario, so changed, asks for that rather than for a step.
[[nodiscard]] bool serves(const Spec& scenario, const std::vector<std::string>& assignments);

}  // namespace moeline

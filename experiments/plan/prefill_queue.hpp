// How long requests wait for their first token: arrivals at a unit of prefill, event by event.
//
// A unit is no M/G/k queue: all its GPUs begin a step together, each takes as many tokens of its own queue as a step
// holds, long prompts are cut, and the step is as long as that of the fullest GPU. So arrivals are simulated: Poisson,
// new tokens drawn from the lengths, each request to the GPU of the unit with the fewest tokens before it.
#pragma once

#include <cmath>
#include <vector>

#include "experiments/plan/lengths.hpp"

namespace moeline {

/// Time of a step by the tokens of its fullest GPU: linear between those given, constant below the first.
struct StepTimes {
  std::vector<double> tokens, ms;  ///< ascending
  [[nodiscard]] double at(double tokens_of_fullest) const;
};

struct PrefillQueue {
  double requests_per_s = 0;   ///< of one unit
  int groups = 0;              ///< attention groups of the unit
  double tokens_per_step = 0;  ///< of each
  StepTimes step;
  /// Of colocated serving: after a step so many of decode, rounded up, of `decode_step_ms` each, per ms that the step
  /// takes longer than `spared_ms`: of a step that decodes as well, what its tokens may take.
  double decode_steps_per_ms = 0, decode_step_ms = 0, spared_ms = 0;
  [[nodiscard]] double decode_ms(double after_step_ms) const;
};

/// Requests that come to a unit: always the same ones, drawn once for all units that they are tried on.
struct Arrivals {
  std::vector<double> gaps;    ///< before each, of a mean of 1 (Poisson)
  std::vector<double> tokens;  ///< to prefill: without those that are cached
};
[[nodiscard]] Arrivals draw_arrivals(const Lengths& new_tokens);

/// What arrivals make of a unit.
struct PrefillTimes {
  double ttft_ms = 0;  ///< at the percentile asked for
  double share = 0;    ///< of time, in steps of prefill; partly filled ones take more of it than full ones would
  double step_ms = 0;  ///< of these, on average
};

/// TTFT is that of thousands of requests, the first tenth left out. Of a unit that cannot keep up it grows with the
/// requests taken. Infinite, and soon known, where too many take longer than `limit_ms` for the percentile to be within
/// it.
[[nodiscard]] PrefillTimes prefill_times(const PrefillQueue& queue, const Arrivals& arrivals, double percentile,
                                         double limit_ms = INFINITY);

}  // namespace moeline

// How long requests wait for their first token, and for the others where prompts are computed between them: arrivals at
// a unit, event by event.
//
// A unit is no M/G/k queue: all its groups begin a step together, each takes as many tokens of its own queue as a step
// holds, long prompts are cut, and the step waits for the group that has most to do. So arrivals are simulated:
// Poisson, lengths drawn, each request to the group that has the fewest before it, or to each in turn. It is what
// serve/replica.hpp does with every token, in so few words that thousands of units can be tried.
#pragma once

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "experiments/plan/lengths.hpp"

namespace moeline {

/// What a group computes of prompts in a step.
struct PromptWork {
  double tokens = 0;
  double pairs = 0;  ///< of these, each with the keys that the last token of its prompt's part sees
};

/// Time of a step by the tokens of a group, ascending: linear between those given, constant below the first. What a
/// group does for itself (all but dispatch, experts and combine) is that of the busiest one, all else that of the mean;
/// both also go by the keys that tokens see.
struct StepTimes {
  std::vector<double> tokens, ms;
  std::vector<double> own_ms;  ///< of `ms`, what a group does for itself; with one group all of it
  std::vector<double> seen;    ///< keys that the last token of a part saw in these steps
  double ms_per_pair = 0;      ///< beyond them, and below them less
  [[nodiscard]] double at(const PromptWork& busiest, const PromptWork& mean) const;
};

struct PrefillQueue {
  double requests_per_s = 0;   ///< of one unit
  int groups = 0;              ///< attention groups of the unit
  double tokens_per_step = 0;  ///< of each
  StepTimes step{};
  bool overlapped = true;            ///< a step is made up while the one before runs
  bool in_turn = false;              ///< requests go to groups in turn, not to the one with the fewest
  double cache_hit_share = 0;        ///< of each prompt, its first tokens
  double transfer_ms_per_token = 0;  ///< of a prompt's cache, to where its answer is made
  /// Of colocated serving: a step without prompts, of which one follows the other while no prompt is there; 0: nothing
  /// decodes here. `mixed`: those with prompts give tokens to all that decode, too.
  double decode_step_ms = 0;
  bool mixed = false;
  double slots = 0;                   ///< requests of a group that compute their prompt or decode; 0: without a limit
  double tokens_per_decode_step = 1;  ///< of a request; drafts that are accepted are among them
};

/// Requests that come to a unit: always the same ones, drawn once for all units that they are tried on.
struct Arrivals {
  std::vector<double> gaps;     ///< before each, of a mean of 1 (Poisson)
  std::vector<double> prompts;  ///< tokens, those that are cached too
  std::vector<double> answers;  ///< tokens
};
[[nodiscard]] Arrivals draw_arrivals(const Lengths& prompts, const Lengths& answers);

/// What arrivals make of a unit.
struct PrefillTimes {
  double ttft_ms = 0;  ///< at the percentile asked for
  double tpot_ms = 0;  ///< the same, where answers are made between prompts; else 0
  double share = 0;    ///< of time, in steps with prompts; partly filled ones take more of it than full ones would
  double step_ms = 0;  ///< of these, on average
};

/// Those of thousands of requests, the first tenth left out. Of a unit that cannot keep up TTFT grows with the requests
/// taken. Infinite, and soon known, where too many take longer than `limit_ms` for the percentile to be within it.
[[nodiscard]] PrefillTimes prefill_times(const PrefillQueue& queue, const Arrivals& arrivals, double percentile,
                                         double limit_ms = INFINITY);

}  // namespace moeline

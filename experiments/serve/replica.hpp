// One replica that prefills and decodes, step by step: which requests are in which step, and when each gets its tokens.
#pragma once

#include <functional>
#include <vector>

#include "experiments/serve/traffic.hpp"

namespace moeline {

/// What the attention group that has most to do has in a step; all groups take the step together.
struct StepLoad {
  int answers = 0;  ///< requests that get a token
  double keys = 0;  ///< of these, tokens in the KV cache, on average
  int prompts = 0;  ///< tokens of prompts that are computed
  double seen = 0;  ///< keys that such a token's last one sees, on average over the tokens
};
/// In ms.
using StepMs = std::function<double(const StepLoad&)>;

struct ReplicaShape {
  int groups = 1;        ///< attention groups, each with requests of its own
  double kv_tokens = 0;  ///< that the KV cache of a group holds
};

struct ServedRequest {
  double arrival_ms = 0, begin_ms = 0, first_token_ms = 0, end_ms = 0;  ///< begin: of its first step
  int group = 0;
  int input_len = 0, cached_len = 0, output_len = 0;  ///< tokens

  [[nodiscard]] double ttft_ms() const { return first_token_ms - arrival_ms; }
  [[nodiscard]] int new_tokens() const { return input_len - cached_len; }
  [[nodiscard]] double kv_tokens() const { return double{1} * input_len + output_len; }
};

struct ServedStep {
  double start_ms = 0, ms = 0;
  StepLoad load{};
  int waiting = 0;  ///< requests of which no step has begun
};

struct ServeLog {
  std::vector<ServedRequest> requests;  ///< by arrival
  std::vector<ServedStep> steps;
  double end_ms = 0;
};

/// A request goes to the group that has fewest when it comes (of equals the first), waits there until its whole cache
/// fits beside those before it, and ends with its last token. In a step each request that decodes gets a token; prompts
/// take what is left of the step's tokens, the first come first, each but for its cached part. `seed`: of arrivals and
/// of lengths, log-normal, up to eight times their mean; a prompt has at least one token that is not cached.
/// Throws SpecError where one request does not fit.
[[nodiscard]] ServeLog serve_requests(const ServeWorkload& workload, const ReplicaShape& shape, const StepMs& step_ms,
                                      int seed);

}  // namespace moeline

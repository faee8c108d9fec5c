// Which requests come when: the workload of a scenario whose phase is `serve`.
#pragma once

#include <string>

#include "base/spec.hpp"

namespace moeline {

inline constexpr const char* kServePhase = "serve";

/// How prompts and answers share steps.
enum class PromptOrder {
  mixed,  ///< a chunk of prompts is computed in a step in which requests decode
  first,  ///< steps of prompts alone, before any of decoding
};

struct ServeWorkload {
  int concurrency = 0;  ///< closed loop: so many requests at any time; 0: they come by themselves
  double rate = 0;      ///< of these, requests per second, of all GPUs together (Poisson)
  int requests = 0;     ///< that are served
  int input_len = 0;    ///< tokens of a prompt
  int cached_len = 0;   ///< of these, in the KV cache already
  int output_len = 0;   ///< tokens of an answer
  double input_len_spread = 0, output_len_spread = 0;  ///< standard deviations of log-normal lengths; 0: all alike
  int tokens = 0;      ///< of prompts and answers together in a step, of each attention group
  int batch_size = 0;  ///< requests of an attention group at a time; 0: as many as memory holds
  PromptOrder order = PromptOrder::mixed;
};

/// Whether a scenario asks for that, rather than for a step.
[[nodiscard]] bool is_served(const Spec& scenario);

/// Throws SpecError.
[[nodiscard]] ServeWorkload read_serve(const Spec& workload);

}  // namespace moeline

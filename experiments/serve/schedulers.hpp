// What each stack's scheduler does where a workload says nothing: of SGLang 0.5.14, vLLM 0.20 and TensorRT-LLM 1.3.
#pragma once

#include <string>
#include <vector>

#include "experiments/serve/traffic.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

struct SchedulerDefault {
  std::string key, value;  ///< of the workload
  const char* source;
};

/// Of the stack whose kernels they are; none of those that train alone.
[[nodiscard]] Stack scheduler_of(const Setup& setup);
/// `setup`: of a step of the replicas that compute prompts.
[[nodiscard]] std::vector<SchedulerDefault> scheduler_defaults(const ServeWorkload& workload, const Setup& setup);

void take(const SchedulerDefault& each, ServeWorkload& workload);
/// With all of them, whatever the workload says.
[[nodiscard]] ServeWorkload with_defaults(ServeWorkload workload, const Setup& setup);

/// The same with the scheduler of the stack whose kernels they are.
[[nodiscard]] ServeWorkload by_its_stack(ServeWorkload workload, const Setup& setup);

/// Share of what running requests may still write that SGLang keeps for them, and how it falls.
struct NewTokenRatio {
  double first = 0, least = 0, decay = 0;  ///< decay: with each step of decode
};
[[nodiscard]] NewTokenRatio new_token_ratio(double conservativeness, int attention_groups);
/// Once requests that have written `written` of at most `most` tokens had to make room for each other.
[[nodiscard]] double ratio_after_retraction(double written, double requests, double most);

/// Of what a request may still write, as much counts at most.
inline constexpr double kMostForeseen = 4096;
/// Tokens that SGLang's servers of decode keep for each request (--num-reserved-decode-tokens).
inline constexpr double kReserved = 512;

}  // namespace moeline

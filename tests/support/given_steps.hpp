// Requests served on step times that are given, not simulated.
#pragma once

#include <map>

#include "experiments/serve/cluster.hpp"

namespace moeline::testing {

inline constexpr double kStepMs = 10;
inline double constant(const StepLoad& /*busiest*/, const StepLoad& /*mean*/, const StepState& /*state*/) {
  return kStepMs;
}
// A millisecond, and one for each 64 tokens of prompts of the busiest group.
inline double by_prompts(const StepLoad& busiest, const StepLoad& /*mean*/, const StepState& /*state*/) {
  return 1 + busiest.prompts / 64;
}

inline const ReplicaShape kRoomy{.groups = 1, .kv_tokens = 1e9};

inline ServeWorkload workload(int requests, int concurrency) {
  ServeWorkload w;
  w.requests = requests;
  w.concurrency = concurrency;
  w.input.mean = 256;
  w.output.mean = 32;
  w.tokens = 1024;
  w.overlapped = false;
  return w;
}

inline ServeLog served(const ServeWorkload& w, const ReplicaShape& shape = kRoomy, const StepCost& step = constant) {
  return serve_requests(w, {.answers = {w.replicas, shape, step}}, 1);
}

inline ServeLog served_apart(const ServeWorkload& w, double transfer_ms, const ReplicaShape& answers = kRoomy,
                             const ReplicaShape& prompts = kRoomy) {
  return serve_requests(
      w,
      {.answers = {w.replicas, answers, constant},
       .prompts = ReplicaPool{w.prefill.replicas, prompts, constant},
       .transfer_ms = [=](double /*tokens*/, const StepLoad& /*from*/, const StepLoad& /*to*/) { return transfer_ms; }},
      1);
}

inline std::map<int, int> by_replica(const ServeLog& log) {
  std::map<int, int> counts;
  for (const ServedRequest& each : log.requests) ++counts[each.replica];
  return counts;
}

// Every token of every answer was got in some step.
inline double answered(const ServeLog& log) {
  double sum = 0;
  for (const ServedStep& step : log.steps) sum += step.busiest.answers;
  return sum;
}

}  // namespace moeline::testing

// Replicas behind a router, event by event.
#pragma once

#include <functional>
#include <optional>

#include "base/progress.hpp"
#include "experiments/serve/replica.hpp"

namespace moeline {

struct ServeDeployment {
  ReplicaPool answers;                   ///< that compute prompts as well, unless others do
  std::optional<ReplicaPool> prompts{};  ///< these
  /// Of the cache of so many tokens, from a replica of these to one of the others, beside the steps that they are in.
  std::function<double(double tokens, const StepLoad& from, const StepLoad& to)> transfer_ms{};
};

/// `seed`: of arrivals, lengths, prefixes and accepted drafts. Throws SpecError where a request does not fit.
[[nodiscard]] ServeLog serve_requests(const ServeWorkload& workload, const ServeDeployment& deployment, int seed,
                                      const Progress& progress = {});

}  // namespace moeline

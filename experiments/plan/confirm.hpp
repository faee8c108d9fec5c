// A plan's answer served request by request: whether its limits hold where requests come one by one.
#pragma once

#include "base/progress.hpp"
#include "experiments/plan/deployment.hpp"
#include "experiments/plan/plan.hpp"
#include "experiments/serve/measures.hpp"

namespace moeline {

struct Confirmation {
  int requests = 0;                 ///< that came
  double ttft_ms = 0, tpot_ms = 0;  ///< at the limits' percentile
  ServeMeasures measures;
};

/// Requests come by chance (Poisson) at the plan's rate, as long as its lengths say, to all units of the deployment:
/// prompts to the prefill unit that has the fewest, caches over the NIC to the decode unit that has the fewest and a
/// free slot. Steps take what is there when they begin. As many come as are in flight six times over, a million at
/// most; numbers are of the steady state. Of colocated deployments prompts and answers take turns on all units, as the
/// plan counts steps of decode between those with prompts (colocated.hpp).
[[nodiscard]] Confirmation confirm(const Plan& plan, const Deployment& deployment, const Progress& progress = {});

}  // namespace moeline

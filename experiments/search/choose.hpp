// Which of the plans that are fastest by layer: by what their whole runs take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/search/variants.hpp"

namespace moeline {

/// By the scenario's plan, and by the best.
struct PlanTimes {
  double published = 0, best = 0;
};

struct PlanCandidate {
  Setup setup;                       ///< with its plan, one rank that stands for all
  std::vector<std::string> changes;  ///< of the scenario, beside the plan
  double us = 0;                     ///< of a layer
};

struct Choice {
  PlanCandidate best;
  PlanTimes run_ms;                            ///< as `simulate` says; of several samples the median
  std::optional<PlanTimes> all_ranks_us = {};  ///< of a layer, where all ranks were simulated
  int samples = 1;
};

/// `own`: the scenario's, which stays where none is faster; one without a plan does not. `by_variant`: several of each
/// variant, of which one alone is run with all ranks and, of samples that the scenario asks for, up to 16. Compared are
/// whole runs, in training layers, which go on there. Throws SpecError where the scenario's own cannot run.
[[nodiscard]] Choice choose(const VariantRequest& request, std::size_t workers, const PlanCandidate& own,
                            const std::vector<std::vector<PlanCandidate>>& by_variant, const Progress& progress);

}  // namespace moeline

// Which of the plans that are fastest by layer: by what their whole runs take.
#pragma once

#include <cstddef>
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

// The best plan of overlapped phases: its order, and what is asked for beside it. Every one that counts is simulated;
// what none can beat is a bound.

struct SearchRequest : VariantRequest {
  bool orders = true;
  std::size_t most = 4000;  ///< plans that are simulated, beside each variant's own
  double seconds = 0;       ///< after which nothing more is begun; 0: no limit
  std::size_t workers = 1;
};

struct SearchResult {
  PlanTimes us;         ///< of a layer, of one rank that stands for all
  double bound_us = 0;  ///< that no plan searched for goes below
  double floor_us = 0;  ///< that no order of these kernels goes below
  /// The plan that is chosen: of the fastest by layer the one whose whole run is, with all ranks and samples where the
  /// scenario asks for them; the scenario's own where none is faster.
  Setup best;
  OverlapPlan plan;                       ///< the same
  double chosen_us = 0;                   ///< a layer of it; above the best's, where the whole run decides otherwise
  PlanTimes run_ms;                       ///< the whole run of it, as `simulate` says
  std::optional<PlanTimes> all_ranks_us;  ///< a layer of it, where all ranks were simulated
  int samples = 1;                        ///< of which these are medians
  std::vector<std::string> changes;       ///< of the scenario, beside the plan
  std::string text;  ///< of the plan, as `simulate --set overlap=FILE` reads it; comments say what it was found for
  std::size_t evaluated = 0;  ///< simulated
  double pruned = 0;          ///< that take too long at least
  double impossible = 0;      ///< orders in which something waits for itself
  double left_out = 0;        ///< that may be faster, and were not tried
  std::size_t faster = 0;     ///< simulated plans that beat the scenario's
  bool exhaustive = false;    ///< every plan was simulated, pruned or impossible: the best is the best there is
  double plans = 0;           ///< that there are
  std::vector<RefusedVariants> refused;
};

/// Throws SpecError: of the scenario, or where its schedule has no plan.
[[nodiscard]] SearchResult search(const SearchRequest& request, const Progress& progress);

}  // namespace moeline

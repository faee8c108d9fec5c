// The fastest layouts of a training job.
//
// First splits are compared: every way to share the GPUs out, in orders that stand for all (first_orders_of), each with
// the least recomputation that fits into memory. The best of them are tried with every order and every recomputation.
// The best of all are simulated operator by operator, and ranked by that. Only what fits memory counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/plan_training/layout.hpp"

namespace moeline {

struct TrainingAnswer {
  std::vector<LayoutPoint> best;       ///< confirmed, the fastest (where machines have prices, the cheapest) first
  std::vector<LayoutPoint> searched;   ///< by slots, the fastest first: all that fit
  std::vector<LayoutPoint> too_large;  ///< the leanest first: those that do not
  std::map<std::string, int> refused;  ///< layouts that are no scenario, by the reason
};

/// Throws SpecError where no layout is a scenario.
[[nodiscard]] TrainingAnswer search_layouts(const TrainingJob& job, LayoutPoints& points, std::size_t workers,
                                            const Progress& progress);

/// The search's pool again under another assumption.
struct LayoutSensitivity {
  std::string assumption;    ///< "NICs half as fast"
  LayoutPoint best, answer;  ///< by slots: the best then, and the answer
};
[[nodiscard]] std::vector<LayoutSensitivity> layout_sensitivities(const TrainingJob& job, const TrainingAnswer& answer,
                                                                  LayoutPoints& points, std::size_t workers,
                                                                  const Progress& progress = {});

}  // namespace moeline

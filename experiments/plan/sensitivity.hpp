// How much an answer depends on what it assumes.
#pragma once

#include <string>
#include <vector>

#include "experiments/plan/solve.hpp"

namespace moeline {

/// The search again, with one assumption changed to either side. 0 GPUs: no deployment.
struct Sensitivity {
  std::string assumption;  ///< "output lengths"
  std::string less, more;  ///< "-20 %"
  Deployment with_less, with_more;
};

/// Traffic, lengths and cache hits, limits, memory reserve, acceptance of drafted tokens (where any are), the NIC, and
/// the steps that were simulated: what if all of them took a tenth longer.
/// Searched are the machines, sizes of units and ways of serving of the answer that cost half more than its best at
/// most. Empty where the answer has no deployment.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const Plan& plan, const Answer& answer, KnownSteps& known,
                                                     std::size_t workers, const Progress& progress = {});

}  // namespace moeline

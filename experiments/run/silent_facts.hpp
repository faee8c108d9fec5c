// Facts of the machine that a scenario sets, and that nothing in it depends on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"

namespace moeline {

/// The scenario of a run with another value of a fact: "nic_GBps=100". Throws SpecError where that is refused.
using SetupWithFact = std::function<Setup(const std::string& fact)>;

/// Of the facts that the run's scenario sets, those that move nothing: with another value, a third less or more, no
/// kernel of the run has another price, and the whole run has the same metrics. `memory_gib`, which results are held
/// against, is none of them.
[[nodiscard]] std::vector<std::string> silent_facts(const Run& run, const SetupWithFact& with);

/// Every metric of the two runs is the same, but for how it is known.
[[nodiscard]] bool have_same_metrics(const Run& one, const Run& other);

}  // namespace moeline

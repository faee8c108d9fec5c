// What validate prints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/validate/score_facts.hpp"
#include "experiments/validate/score_served.hpp"

namespace moeline {

using KernelSets = std::map<std::string, KernelSet>;

struct Validation {
  std::vector<ScoredSubject> subjects;
  std::vector<ScoredServed> served;
  KernelSets kernel_sets;  ///< behind the subjects' predictions
};

[[nodiscard]] std::string to_json(const Validation& validation);
[[nodiscard]] std::string to_table(const Validation& validation);

}  // namespace moeline

// What validate prints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/validate/score_facts.hpp"

namespace moeline {

using KernelSets = std::map<std::string, KernelSet>;

[[nodiscard]] std::string to_json(const std::vector<ScoredSubject>& subjects, const KernelSets& kernel_sets);
[[nodiscard]] std::string to_table(const std::vector<ScoredSubject>& subjects, const KernelSets& kernel_sets);

}  // namespace moeline

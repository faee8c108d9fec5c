// Files of facts, of served models and of pairs of settings, held against their predictions.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "experiments/validate/score_facts.hpp"
#include "experiments/validate/score_pairs.hpp"
#include "experiments/validate/score_served.hpp"

namespace moeline {

using KernelSets = std::map<std::string, KernelSet>;

struct Validation {
  std::vector<ScoredSubject> subjects;
  std::vector<ScoredServed> served;
  std::vector<ScoredPairs> pairs;
  KernelSets kernel_sets;  ///< behind the subjects' predictions
};

/// All of tests/published.
[[nodiscard]] std::vector<std::filesystem::path> all_fact_files();

/// Throws SpecError: a file is none of these. All are read before the first is predicted.
[[nodiscard]] Validation validate(const std::vector<std::filesystem::path>& files, const Progress& progress = {});

}  // namespace moeline

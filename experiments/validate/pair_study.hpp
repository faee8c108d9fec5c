// Pairs of settings of which others measured both sides: a YAML file with the key `pairs`
// (experiments/studies/decisions/pairs.yaml has every key).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/spec.hpp"
#include "experiments/decide/measure.hpp"
#include "experiments/decide/setting.hpp"
#include "experiments/decide/sure.hpp"
#include "experiments/validate/facts.hpp"

namespace moeline {

struct PublishedPair {
  std::string id;
  DifferenceKind kind{};
  std::string source;
  std::string assumed{};    ///< what is not published and was chosen; ""
  std::string why_wrong{};  ///< of a pair whose slower side is named: the cause, as far as it is known; ""
  DecideSetting a, b;
  Measure by;
  double a_value = 0, b_value = 0;  ///< published, of `by` or of what is proportional to it

  [[nodiscard]] double ratio() const { return b_value / a_value; }
};

struct PairStudy {
  std::string name, about;
  FactStatus status = FactStatus::not_fitted;
  std::vector<PublishedPair> pairs;
};

/// Whether a file is such a study, and no file of facts.
[[nodiscard]] bool is_pair_study(const Spec& spec);

/// Throws SpecError with file, line and key.
[[nodiscard]] PairStudy read_pair_study(const Spec& spec);

}  // namespace moeline

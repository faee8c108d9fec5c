// Published pairs held against predictions: is the faster side named, and how far is the ratio off?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/decide/outcome.hpp"
#include "experiments/validate/pair_study.hpp"

namespace moeline {

struct ScoredPair {
  PublishedPair pair;
  SettingOutcome a, b;

  /// A ratio needs two values above 0.
  [[nodiscard]] bool is_predicted() const { return a.is_simulated() && b.is_simulated() && a.value > 0 && b.value > 0; }
  /// B over A, as the published one. REQUIRES: it is predicted.
  [[nodiscard]] double ratio() const { return b.value / a.value; }
  [[nodiscard]] double error() const { return ratio() / pair.ratio() - 1; }
  [[nodiscard]] bool is_right() const { return (ratio() > 1) == (pair.ratio() > 1); }
  /// What it is refused with; "" where it is predicted.
  [[nodiscard]] std::string refused() const {
    if (!a.is_simulated()) return a.refused;
    return !b.is_simulated() ? b.refused : is_predicted() ? "" : "one of both is 0";
  }
};

struct ScoredPairs {
  PairStudy study;
  std::vector<ScoredPair> pairs{};
  std::vector<PairErrors> errors{};  ///< by kind, of all last
  double null_median_abs_error = 0;  ///< of the null model: both sides are alike
  int sure = 0, sure_right = 0;      ///< pairs that are ahead by more than the others were off in the median, of their
                                     ///< kind where it has three; and of these those whose faster side is named
};

/// All of them, on all cores.
[[nodiscard]] ScoredPairs score(PairStudy study);

}  // namespace moeline

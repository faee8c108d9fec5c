// Predictions held against facts: errors, gates, and what null models achieve.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/validate/predictor.hpp"

namespace moeline {

enum class Verdict {
  passed,   ///< within its gate
  failed,   ///< not
  scored,   ///< it has no gate
  fitted,   ///< constants were fitted to it: shown, and no part of any score
  skipped,  ///< data that the project does not ship is absent
};
[[nodiscard]] const char* name_of(Verdict verdict);

struct ScoredFact {
  Fact fact;
  Prediction prediction;
  Verdict verdict = Verdict::scored;

  /// predicted / measured - 1.
  [[nodiscard]] double error() const { return prediction.value / fact.measured - 1; }
  [[nodiscard]] double null_error(const std::string& null) const {
    return prediction.nulls.at(null) / fact.measured - 1;
  }
  /// REQUIRES: the prediction has a band.
  [[nodiscard]] bool in_band() const {
    return prediction.band->p5 <= fact.measured && fact.measured <= prediction.band->p95;
  }
  [[nodiscard]] bool is_score() const { return verdict != Verdict::fitted && verdict != Verdict::skipped; }
};

/// Over some facts of a subject.
struct FactErrors {
  int facts = 0;
  double mean_abs_error = 0;
  double worst_error = 0;  ///< signed
  double mean_error = 0;   ///< signed
};

struct ScoredSubject {
  Subject subject;
  std::vector<ScoredFact> facts{};
  FactErrors errors{};                        ///< of those that are scores
  std::map<std::string, FactErrors> nulls{};  ///< by name, of those that have the null
  Verdict mean_verdict = Verdict::scored;     ///< of the mean's gate

  /// Gates that came out so, the mean's among them.
  [[nodiscard]] int gates(Verdict verdict) const;
};

[[nodiscard]] ScoredSubject score(const Subject& subject, Predictor& predictor);

/// Gates of all of them that came out so.
[[nodiscard]] int gates(const std::vector<ScoredSubject>& subjects, Verdict verdict);

}  // namespace moeline

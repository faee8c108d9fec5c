#include "experiments/validate/score_facts.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

Verdict verdict_of(const ScoredFact& scored) {
  if (!scored.prediction.skipped.empty()) return Verdict::skipped;
  if (scored.fact.status == FactStatus::fitted) return Verdict::fitted;
  if (!scored.fact.gate) return Verdict::scored;
  return std::abs(scored.error()) <= scored.fact.gate->tolerance ? Verdict::passed : Verdict::failed;
}

// The null model of kernels: each reaches the share of its peak that the others with its unit reach on average.
void add_constant_efficiency(std::vector<ScoredFact>& facts) {
  for (ScoredFact& scored : facts) {
    double sum = 0;
    int count = 0;
    for (const ScoredFact& other : facts) {
      if (&other == &scored || other.fact.unit != scored.fact.unit || other.prediction.roofline == 0) continue;
      sum += other.fact.measured / other.prediction.roofline;
      ++count;
    }
    if (count > 0 && scored.prediction.roofline > 0) {
      scored.prediction.nulls[kConstantEfficiency] = scored.prediction.roofline * sum / count;
    }
  }
}

void add(double error, FactErrors& summary) {
  ++summary.facts;
  const double share = 1.0 / summary.facts;
  summary.mean_abs_error += (std::abs(error) - summary.mean_abs_error) * share;
  summary.mean_error += (error - summary.mean_error) * share;
  if (std::abs(error) > std::abs(summary.worst_error)) summary.worst_error = error;
}

void summarise(ScoredSubject& scored) {
  for (const ScoredFact& each : scored.facts) {
    if (!each.is_score()) continue;
    add(each.error(), scored.errors);
    for (const auto& [null, value] : each.prediction.nulls) add(each.null_error(null), scored.nulls[null]);
  }
  const auto& gate = scored.subject.mean_gate;
  if (!gate) return;
  if (scored.errors.facts == 0) {
    scored.mean_verdict = Verdict::skipped;
  } else {
    scored.mean_verdict = scored.errors.mean_abs_error <= gate->tolerance ? Verdict::passed : Verdict::failed;
  }
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::scored:
      return "scored";
    case Verdict::fitted:
      return "fitted";
    case Verdict::skipped:
      return "skipped";
  }
  return "";
}

int ScoredSubject::gates(Verdict verdict) const {
  const auto count = std::count_if(facts.begin(), facts.end(), [verdict](const ScoredFact& each) {
    return each.fact.gate && each.verdict == verdict;
  });
  return static_cast<int>(count) + (subject.mean_gate && mean_verdict == verdict ? 1 : 0);
}

int gates(const std::vector<ScoredSubject>& subjects, Verdict verdict) {
  int count = 0;
  for (const ScoredSubject& each : subjects) count += each.gates(verdict);
  return count;
}

ScoredSubject score(const Subject& subject, Predictor& predictor) {
  ScoredSubject scored{.subject = subject};
  for (const Fact& fact : subject.facts) scored.facts.push_back({.fact = fact, .prediction = predictor.predict(fact)});
  add_constant_efficiency(scored.facts);
  for (ScoredFact& each : scored.facts) each.verdict = verdict_of(each);
  summarise(scored);
  return scored;
}

}  // namespace moeline

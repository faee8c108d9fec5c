#include "experiments/validate/baseline.hpp"

#include <algorithm>
#include <cmath>

namespace moeline {
namespace {

constexpr double kPoints = 0.02;  // 2 of 100

double rounded(double error) {
  constexpr double kPlaces = 1e4;
  return std::round(error * kPlaces) / kPlaces;
}

FactErrorById read_errors(const Spec& errors) {
  constexpr double kMost = 1e6;
  FactErrorById read;
  for (const std::string& id : errors.keys()) read.emplace(id, errors.number(id, -1, kMost));
  return read;
}

}  // namespace

Baseline read_baseline(const std::filesystem::path& path) {
  const Spec spec = Spec::load(path);
  spec.expect({"schema_version", "versions"});
  (void)spec.integer("schema_version", 1, 1);
  Baseline baseline;
  for (const Spec& version : spec.maps("versions")) {
    version.expect({"program", "errors"});
    baseline.versions.push_back({version.text("program"), read_errors(version.map("errors"))});
  }
  if (baseline.versions.empty()) throw spec.error("versions", "is empty: there is nothing to compare with");
  return baseline;
}

FactErrorById errors_of(const Validation& validation) {
  FactErrorById errors;
  for (const ScoredSubject& subject : validation.subjects) {
    for (const ScoredFact& scored : subject.facts) {
      if (scored.verdict != Verdict::skipped) errors.emplace(scored.fact.id, rounded(scored.error()));
    }
  }
  return errors;
}

void add_version(Baseline& baseline, const std::string& program, FactErrorById errors) {
  std::vector<BaselineVersion>& versions = baseline.versions;
  if (!versions.empty()) errors.insert(versions.back().errors.begin(), versions.back().errors.end());
  if (!versions.empty() && versions.back().program == program) versions.pop_back();
  versions.push_back({program, std::move(errors)});
}

double ChangedError::growth() const { return std::abs(now) - std::abs(was); }

BaselineDifference difference(const FactErrorById& was, const FactErrorById& now) {
  constexpr double kRounding = 1e-9;
  BaselineDifference result;
  for (const auto& [id, error] : was) {
    const auto found = now.find(id);
    if (found == now.end()) {
      result.absent.push_back(id);
      continue;
    }
    const ChangedError change{id, error, found->second};
    if (std::abs(change.growth()) < kPoints - kRounding) {
      ++result.alike;
    } else {
      (change.growth() > 0 ? result.worse : result.better).push_back(change);
    }
  }
  for (const auto& [id, error] : now) {
    if (!was.contains(id)) result.added.push_back(id);
  }
  const auto larger = [](const ChangedError& a, const ChangedError& b) {
    return std::abs(a.growth()) > std::abs(b.growth());
  };
  for (auto* changes : {&result.worse, &result.better}) std::stable_sort(changes->begin(), changes->end(), larger);
  return result;
}

}  // namespace moeline

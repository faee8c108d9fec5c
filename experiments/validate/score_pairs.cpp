#include "experiments/validate/score_pairs.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"

namespace moeline {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.empty()) return 0;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Of the pairs of a kind, or of all; but for one.
PairErrors errors_of(const std::vector<ScoredPair>& pairs, std::optional<DifferenceKind> kind,
                     const ScoredPair* left_out = nullptr) {
  PairErrors errors{.kind = kind};
  std::vector<double> sizes;
  for (const ScoredPair& scored : pairs) {
    if (!scored.is_predicted() || (kind && scored.pair.kind != *kind) || &scored == left_out) continue;
    ++errors.pairs;
    errors.right += scored.is_right() ? 1 : 0;
    sizes.push_back(std::abs(scored.error()));
  }
  errors.median_abs_error = median_of(std::move(sizes));
  return errors;
}

// By the others alone.
bool is_called_sure(const std::vector<ScoredPair>& pairs, const ScoredPair& of) {
  const PairErrors kind = errors_of(pairs, of.pair.kind, &of);
  const PairErrors others = kind.pairs >= kEnoughPairs ? kind : errors_of(pairs, std::nullopt, &of);
  return std::max(of.ratio(), 1 / of.ratio()) - 1 > others.median_abs_error;
}

}  // namespace

ScoredPairs score(PairStudy study) {
  ScoredPairs scored{.study = std::move(study)};
  for (const PublishedPair& pair : scored.study.pairs) scored.pairs.push_back({pair, {}, {}});
  parallel_for(2 * scored.pairs.size(), cores(), [&](std::size_t i) {
    ScoredPair& each = scored.pairs[i / 2];
    (i % 2 == 0 ? each.a : each.b) = outcome_of(i % 2 == 0 ? each.pair.a : each.pair.b, {}, {each.pair.by});
  });
  std::vector<double> nulls;
  std::vector<DifferenceKind> kinds;
  for (const ScoredPair& each : scored.pairs) {
    if (!each.is_predicted()) continue;
    nulls.push_back(std::abs(1 / each.pair.ratio() - 1));
    if (std::ranges::find(kinds, each.pair.kind) == kinds.end()) kinds.push_back(each.pair.kind);
  }
  std::ranges::sort(kinds);
  for (const DifferenceKind kind : kinds) scored.errors.push_back(errors_of(scored.pairs, kind));
  scored.errors.push_back(errors_of(scored.pairs, std::nullopt));
  scored.null_median_abs_error = median_of(std::move(nulls));
  for (const ScoredPair& each : scored.pairs) {
    if (!each.is_predicted() || !is_called_sure(scored.pairs, each)) continue;
    ++scored.sure;
    scored.sure_right += each.is_right() ? 1 : 0;
  }
  return scored;
}

}  // namespace moeline

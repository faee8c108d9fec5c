#include "calib/fit/assess.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "calib/fit/solve.hpp"

namespace moeline {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> absolute;
  for (const double error : errors) absolute.push_back(std::abs(error));
  return {quantile(errors, 0.5), quantile(absolute, 0.5), quantile(absolute, 0.95)};
}

namespace {

constexpr double kShortestUs = 1;  // the profiler's resolution

struct Scored {
  const Observation* observation;
  double error;  // predicted / measured - 1
};

FamilyFit summarise(const std::vector<Scored>& scores) {
  FamilyFit fit;
  std::vector<double> absolute;
  for (const auto& [o, error] : scores) {
    absolute.push_back(std::abs(error));
    if (std::abs(error) >= std::abs(fit.worst_error)) fit.worst_error = error;
    fit.mean_error += error / static_cast<double>(scores.size());
    extend(fit.range, o->dimensions);
    fit.host_timed = fit.host_timed || o->host_timed;
    if (o->throttled) fit.clock = Clock::sustained;
    ++fit.kernels;
  }
  fit.median_abs_error = quantile(absolute, 0.5);
  fit.p95_abs_error = quantile(absolute, 0.95);
  return fit;
}

// What is known without some fold, or nothing where everything else leaves a constant undetermined.
std::optional<Constants> solve_without(const std::string& fold, Cut cut, const std::vector<Observation>& observations) {
  std::vector<Observation> kept;
  for (const Observation& o : observations) {
    if (o.*cut != fold) kept.push_back(o);
  }
  try {
    return solve(kept);
  } catch (const SpecError&) {
    return std::nullopt;
  }
}

}  // namespace

Predictions predict(const std::vector<Observation>& observations, const Constants& constants) {
  Predictions predictions;
  for (const Observation& o : observations) predictions.push_back(evaluate(o, constants));
  return predictions;
}

Predictions predict_left_out(const std::vector<Observation>& observations, Cut cut) {
  std::set<std::string> folds;
  for (const Observation& o : observations) folds.insert(o.*cut);
  folds.erase("");
  Predictions predictions(observations.size(), kUnknown);
  for (const std::string& fold : folds) {
    const std::optional<Constants> constants = solve_without(fold, cut, observations);
    if (!constants) continue;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      if (observations[i].*cut == fold) predictions[i] = evaluate(observations[i], *constants);
    }
  }
  return predictions;
}

double error_of(double predicted_us, const Observation& o) {
  return predicted_us / (o.noise == Noise::profiled ? std::max(o.measured_us, kShortestUs) : o.measured_us) - 1;
}

std::map<std::string, FamilyFit> assess(const std::vector<Observation>& observations, const Predictions& predictions) {
  std::map<std::string, std::vector<Scored>> scores;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (std::isnan(predictions[i])) continue;
    scores[observations[i].family].push_back({&observations[i], error_of(predictions[i], observations[i])});
  }
  std::map<std::string, FamilyFit> fits;
  for (const auto& [family, members] : scores) fits[family] = summarise(members);
  return fits;
}

}  // namespace moeline

#include "calib/fit/weights.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace moeline {
namespace {

constexpr double kNoisyUs = 20;  // below this, whole microseconds and launch noise hide relative errors

// Outliers of a benchmark: rows whose relative error is beyond three standard deviations of their family's, as the
// median tells them, and large at that. Fewer rows do not tell what is usual.
constexpr double kOutlierDeviations = 3;
constexpr double kOutlierError = 0.25;
constexpr std::size_t kFewErrors = 8;

double weight_of(const Observation& o) {
  if (o.noise == Noise::timed) return 1 / o.measured_us;
  return 1 / std::sqrt(std::max(o.measured_us, kNoisyUs));
}

double relative_error(const Observation& o, const Constants& constants) {
  return std::abs(evaluate(o, constants) / o.measured_us - 1);
}

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Error from which on a row counts as an outlier, by family.
std::map<std::string, double> outlier_errors(const std::vector<Observation>& observations, const Constants& constants) {
  constexpr double kDeviationOverMedian = 1.4826;  // of a normal distribution's absolute errors
  std::map<std::string, std::vector<double>> errors;
  for (const Observation& o : observations) {
    if (o.noise == Noise::timed) errors[o.family].push_back(relative_error(o, constants));
  }
  std::map<std::string, double> limits;
  for (const auto& [family, values] : errors) {
    if (values.size() < kFewErrors) continue;
    limits[family] = std::max(kOutlierError, kOutlierDeviations * kDeviationOverMedian * middle_of(values));
  }
  return limits;
}

}  // namespace

Weights weights_of(const std::vector<Observation>& observations) {
  Weights weights;
  for (const Observation& o : observations) weights.push_back(weight_of(o));
  return weights;
}

Weights robust_weights(const std::vector<Observation>& observations, const Constants& constants) {
  const std::map<std::string, double> limits = outlier_errors(observations, constants);
  Weights weights = weights_of(observations);
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const auto limit = limits.find(observations[i].family);
    if (observations[i].noise != Noise::timed || limit == limits.end()) continue;
    const double error = relative_error(observations[i], constants);
    if (error > limit->second) weights[i] *= std::pow(limit->second / error, 3);
  }
  return weights;
}

}  // namespace moeline

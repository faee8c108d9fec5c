#include "calib/fit/solve.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace moeline {
namespace {

constexpr double kShortestUs = 1;  // the profiler's resolution
constexpr double kNoisyUs = 20;    // below this, whole microseconds and launch noise hide relative errors

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

FamilyFit summarise(const std::vector<const Observation*>& observations, const Constants& constants) {
  FamilyFit fit;
  std::vector<double> absolute;
  for (const Observation* o : observations) {
    const double error = evaluate(*o, constants) / std::max(o->measured_us, kShortestUs) - 1;
    absolute.push_back(std::abs(error));
    if (std::abs(error) >= std::abs(fit.worst_error)) fit.worst_error = error;
    fit.mean_error += error / static_cast<double>(observations.size());
    fit.smallest = fit.kernels == 0 ? o->size : std::min(fit.smallest, o->size);
    fit.largest = std::max(fit.largest, o->size);
    fit.fewest_sms = fit.kernels == 0 ? o->sms : std::min(fit.fewest_sms, o->sms);
    fit.most_sms = std::max(fit.most_sms, o->sms);
    fit.fewest_ranks = fit.kernels == 0 ? o->ranks : std::min(fit.fewest_ranks, o->ranks);
    fit.most_ranks = std::max(fit.most_ranks, o->ranks);
    ++fit.kernels;
  }
  fit.median_abs_error = median(absolute);
  return fit;
}

}  // namespace

double evaluate(const Observation& observation, const Constants& constants) {
  double us = 0;
  for (const Term& term : observation.terms) us += constants[static_cast<std::size_t>(term.constant)] * term.feature_us;
  return us;
}

Constants solve(const std::vector<Observation>& observations) {
  const auto rows = static_cast<Eigen::Index>(observations.size());
  Eigen::MatrixXd features = Eigen::MatrixXd::Zero(rows, static_cast<Eigen::Index>(kConstants));
  Eigen::VectorXd measured(rows);
  for (Eigen::Index row = 0; row < rows; ++row) {
    const Observation& o = observations[static_cast<std::size_t>(row)];
    const double weight = 1 / std::sqrt(std::max(o.measured_us, kNoisyUs));
    for (const Term& term : o.terms)
      features(row, static_cast<Eigen::Index>(term.constant)) += weight * term.feature_us;
    measured(row) = weight * o.measured_us;
  }
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (features.col(static_cast<Eigen::Index>(i)).isZero(0)) {
      throw SpecError(fmt::format("the measurements say nothing about {}", kConstantNames[i]));
    }
  }
  // Columns differ by orders of magnitude; scaled, the pivots tell a true dependence from a matter of units.
  const Eigen::VectorXd scale = features.colwise().norm();
  const Eigen::MatrixXd scaled = features * scale.cwiseInverse().asDiagonal();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(scaled);
  if (qr.rank() < static_cast<Eigen::Index>(kConstants)) {
    const auto culprit = static_cast<std::size_t>(qr.colsPermutation().indices()(qr.rank()));
    throw SpecError(fmt::format("the measurements do not determine {}", kConstantNames[culprit]));
  }
  const Eigen::VectorXd solution = qr.solve(measured).cwiseQuotient(scale);
  Constants constants{};
  for (std::size_t i = 0; i < kConstants; ++i) {
    constants[i] = solution(static_cast<Eigen::Index>(i));
    if (!(constants[i] >= 0)) {
      throw SpecError(fmt::format("the measurements make {} negative: {:.4g}", kConstantNames[i], constants[i]));
    }
  }
  return constants;
}

std::map<std::string, FamilyFit> assess(const std::vector<Observation>& observations, const Constants& constants) {
  std::map<std::string, std::vector<const Observation*>> by_family;
  for (const Observation& observation : observations) by_family[observation.family].push_back(&observation);
  std::map<std::string, FamilyFit> fits;
  for (const auto& [family, members] : by_family) fits[family] = summarise(members, constants);
  return fits;
}

}  // namespace moeline

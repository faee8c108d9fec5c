#include "calib/fit/solve.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace moeline {
namespace {

constexpr double kShortestUs = 1;  // the profiler's resolution
constexpr double kNoisyUs = 20;    // below this, whole microseconds and launch noise hide relative errors

double weight_of(const Observation& o) {
  if (o.noise == Noise::timed) return 1 / o.measured_us;
  return 1 / std::sqrt(std::max(o.measured_us, kNoisyUs));
}

using Branches = std::vector<std::size_t>;  // that binds, by observation

// The terms that add up to an observation while these branches bind.
std::vector<Term> terms_of(const Observation& o, std::size_t branch) {
  std::vector<Term> terms = o.curve.always;
  if (o.curve.branches.empty()) return terms;
  const std::vector<Term>& binding = o.curve.branches[branch].terms;
  terms.insert(terms.end(), binding.begin(), binding.end());
  return terms;
}

std::vector<std::size_t> mentioned_constants(const std::vector<Observation>& observations) {
  std::set<std::size_t> mentioned;
  for (const Observation& o : observations) {
    for (const Term& term : o.curve.always) mentioned.insert(static_cast<std::size_t>(term.constant));
    for (const Branch& branch : o.curve.branches) {
      for (const Term& term : branch.terms) mentioned.insert(static_cast<std::size_t>(term.constant));
    }
  }
  return {mentioned.begin(), mentioned.end()};
}

// Least squares over the columns `wanted`, with these branches.
Constants solve_linear(const std::vector<Observation>& observations, const Branches& branches,
                       const std::vector<std::size_t>& wanted) {
  const auto rows = static_cast<Eigen::Index>(observations.size());
  const auto columns = static_cast<Eigen::Index>(wanted.size());
  std::array<Eigen::Index, kConstants> column_of{};
  for (Eigen::Index i = 0; i < columns; ++i) column_of[wanted[static_cast<std::size_t>(i)]] = i;
  Eigen::MatrixXd features = Eigen::MatrixXd::Zero(rows, columns);
  Eigen::VectorXd measured(rows);
  for (Eigen::Index row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const Observation& o = observations[index];
    const double weight = weight_of(o);
    for (const Term& term : terms_of(o, branches[index])) {
      features(row, column_of[static_cast<std::size_t>(term.constant)]) += weight * term.feature;
    }
    measured(row) = weight * o.measured_us;
  }
  for (Eigen::Index i = 0; i < columns; ++i) {
    if (features.col(i).isZero(0)) {
      throw SpecError(
          fmt::format("the measurements say nothing about {}", kConstantNames[wanted[static_cast<std::size_t>(i)]]));
    }
  }
  // Columns differ by orders of magnitude; scaled, the pivots tell a true dependence from a matter of units.
  const Eigen::VectorXd scale = features.colwise().norm();
  const Eigen::MatrixXd scaled = features * scale.cwiseInverse().asDiagonal();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(scaled);
  if (qr.rank() < columns) {
    const auto culprit = static_cast<std::size_t>(qr.colsPermutation().indices()(qr.rank()));
    throw SpecError(fmt::format("the measurements do not determine {}", kConstantNames[wanted[culprit]]));
  }
  const Eigen::VectorXd solution = qr.solve(measured).cwiseQuotient(scale);
  Constants constants;
  constants.fill(kUnknown);
  for (Eigen::Index i = 0; i < columns; ++i) constants[wanted[static_cast<std::size_t>(i)]] = solution(i);
  return constants;
}

// No term can be more than what was measured: where the search for the binding branches starts.
Constants upper_bounds(const std::vector<Observation>& observations) {
  Constants bounds;
  bounds.fill(kUnknown);
  const auto bound = [&bounds](const Observation& o, const std::vector<Term>& terms) {
    for (const Term& term : terms) {
      double& least = bounds[static_cast<std::size_t>(term.constant)];
      if (term.feature > 0) least = std::fmin(least, o.measured_us / term.feature);
    }
  };
  for (const Observation& o : observations) {
    bound(o, o.curve.always);
    for (const Branch& branch : o.curve.branches) bound(o, branch.terms);
  }
  return bounds;
}

Branches binding(const std::vector<Observation>& observations, const Constants& constants) {
  Branches branches;
  for (const Observation& o : observations) branches.push_back(evaluate(o.curve, constants).branch);
  return branches;
}

// Of the whole curve, whichever branch binds. Infinite where a constant came out negative: no solution.
double squared_error(const std::vector<Observation>& observations, const Constants& constants) {
  const auto is_negative = [](double constant) { return constant < 0; };
  if (std::any_of(constants.begin(), constants.end(), is_negative)) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const Observation& o : observations) {
    const double error = weight_of(o) * (evaluate(o, constants) - o.measured_us);
    sum += error * error;
  }
  return sum;
}

double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

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
    ++fit.kernels;
  }
  fit.median_abs_error = quantile(absolute, 0.5);
  fit.p95_abs_error = quantile(absolute, 0.95);
  return fit;
}

using ScoresByFamily = std::map<std::string, std::vector<Scored>>;

void score(const Observation& o, const Constants& constants, ScoresByFamily& scores) {
  scores[o.family].push_back({&o, evaluate(o, constants) / std::max(o.measured_us, kShortestUs) - 1});
}

std::map<std::string, FamilyFit> summarise(const ScoresByFamily& scores) {
  std::map<std::string, FamilyFit> fits;
  for (const auto& [family, members] : scores) fits[family] = summarise(members);
  return fits;
}

}  // namespace

Constants solve(const std::vector<Observation>& observations) {
  const std::vector<std::size_t> wanted = mentioned_constants(observations);
  if (wanted.empty()) throw SpecError("there are no measurements to fit");
  std::set<Branches> tried;
  Branches branches = binding(observations, upper_bounds(observations));
  Constants best{};
  double least = 0;
  while (tried.insert(branches).second) {
    const Constants constants = solve_linear(observations, branches, wanted);
    const double error = squared_error(observations, constants);
    if (tried.size() == 1 || error < least) {
      best = constants;
      least = error;
    }
    branches = binding(observations, constants);
  }
  for (const std::size_t i : wanted) {
    if (!(best[i] >= 0)) {
      throw SpecError(fmt::format("the measurements make {} negative: {:.4g}", kConstantNames[i], best[i]));
    }
  }
  return best;
}

std::map<std::string, FamilyFit> assess(const std::vector<Observation>& observations, const Constants& constants) {
  ScoresByFamily scores;
  for (const Observation& o : observations) score(o, constants, scores);
  return summarise(scores);
}

std::map<std::string, FamilyFit> cross_validate(const std::vector<Observation>& observations) {
  std::set<std::string> folds;
  for (const Observation& o : observations) folds.insert(o.fold);
  folds.erase("");
  ScoresByFamily scores;
  for (const std::string& fold : folds) {
    std::vector<Observation> kept;
    for (const Observation& o : observations) {
      if (o.fold != fold) kept.push_back(o);
    }
    const Constants constants = solve(kept);
    for (const Observation& o : observations) {
      if (o.fold == fold) score(o, constants, scores);
    }
  }
  std::map<std::string, FamilyFit> fits = summarise(scores);
  for (auto& [family, fit] : fits) fit.held_out = true;
  return fits;
}

}  // namespace moeline

#include "calib/fit/solve.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "calib/fit/weights.hpp"

namespace moeline {
namespace {

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

// Whether a profile can do without a constant: it makes up a branch of its own, for which the machine's floors stand
// in.
bool dispensable(std::size_t constant) {
  std::size_t group_size = 0;
  for (std::size_t i = 0; i < kConstants; ++i) group_size += group_of(i) == group_of(constant) ? 1 : 0;
  return group_size == 1;
}

// A cost that need not show: so many us per kernel, tile or wave, what tiles load, what a decode's queries add.
bool need_not_show(std::size_t constant) {
  const std::string_view name = constant_name(constant);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("_us") || has(".us") || has("port_") || has("queries_");
}

// Terms in columns, one for each constant that some binding branch has. A constant whose branch never binds is left
// out if it is dispensable.
struct System {
  Eigen::MatrixXd features;
  Eigen::VectorXd measured;
  std::vector<std::size_t> constants;  // by column
};

System linear_system(const std::vector<Observation>& observations, const Weights& weights, const Branches& branches,
                     const std::vector<std::size_t>& wanted) {
  const auto rows = static_cast<Eigen::Index>(observations.size());
  Eigen::MatrixXd features = Eigen::MatrixXd::Zero(rows, static_cast<Eigen::Index>(kConstants));
  System system;
  system.measured.resize(rows);
  for (Eigen::Index row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const Observation& o = observations[index];
    for (const Term& term : terms_of(o, branches[index])) {
      features(row, static_cast<Eigen::Index>(term.constant)) += weights[index] * term.feature;
    }
    system.measured(row) = weights[index] * (o.measured_us - o.curve.fixed_us);
  }
  std::vector<Eigen::Index> columns;
  for (const std::size_t constant : wanted) {
    const auto column = static_cast<Eigen::Index>(constant);
    const bool silent = features.col(column).isZero(0);
    if (silent && !dispensable(constant)) {
      throw SpecError(fmt::format("the measurements say nothing about {}", constant_name(constant)));
    }
    if (silent) continue;
    columns.push_back(column);
    system.constants.push_back(constant);
  }
  system.features = features(Eigen::all, columns);
  return system;
}

// Least squares over the constants `wanted`, with these branches.
Constants solve_linear(const std::vector<Observation>& observations, const Weights& weights, const Branches& branches,
                       const std::vector<std::size_t>& wanted) {
  const System system = linear_system(observations, weights, branches, wanted);
  // Columns differ by orders of magnitude; scaled, the pivots tell a true dependence from a matter of units.
  const Eigen::VectorXd scale = system.features.colwise().norm();
  const Eigen::MatrixXd scaled = system.features * scale.cwiseInverse().asDiagonal();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(scaled);
  if (qr.rank() < scaled.cols()) {
    const auto culprit = static_cast<std::size_t>(qr.colsPermutation().indices()(qr.rank()));
    throw SpecError(fmt::format("the measurements do not determine {}", constant_name(system.constants[culprit])));
  }
  const Eigen::VectorXd solution = qr.solve(system.measured).cwiseQuotient(scale);
  Constants constants;
  constants.fill(kUnknown);
  for (std::size_t i = 0; i < system.constants.size(); ++i) {
    constants[system.constants[i]] = solution(static_cast<Eigen::Index>(i));
  }
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

// Least squares again without costs that came out negative, the most negative first: 0, they do not show.
Constants solve_non_negative(const std::vector<Observation>& observations, const Weights& weights,
                             const Branches& branches, std::vector<std::size_t> wanted) {
  Constants constants = solve_linear(observations, weights, branches, wanted);
  std::vector<std::size_t> zero;
  while (true) {
    const auto least = std::min_element(wanted.begin(), wanted.end(), [&](std::size_t a, std::size_t b) {
      const auto value = [&](std::size_t i) { return need_not_show(i) && constants[i] < 0 ? constants[i] : 0.0; };
      return value(a) < value(b);
    });
    if (least == wanted.end() || !need_not_show(*least) || !(constants[*least] < 0)) break;
    zero.push_back(*least);
    wanted.erase(least);
    constants = solve_linear(observations, weights, branches, wanted);
  }
  for (const std::size_t constant : zero) constants[constant] = 0;
  return constants;
}

// Of the whole curve, whichever branch binds. Infinite where a constant came out negative: no solution.
double squared_error(const std::vector<Observation>& observations, const Weights& weights, const Constants& constants) {
  const auto is_negative = [](double constant) { return constant < 0; };
  if (std::any_of(constants.begin(), constants.end(), is_negative)) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const double error = weights[i] * (evaluate(observations[i], constants) - observations[i].measured_us);
    sum += error * error;
  }
  return sum;
}

// With these weights; the branches that bind are searched for.
Constants solve_weighted(const std::vector<Observation>& observations, const Weights& weights, Branches branches,
                         const std::vector<std::size_t>& wanted) {
  std::set<Branches> tried;
  Constants best{};
  double least = 0;
  while (tried.insert(branches).second) {
    const Constants constants = solve_non_negative(observations, weights, branches, wanted);
    const double error = squared_error(observations, weights, constants);
    if (tried.size() == 1 || error < least) {
      best = constants;
      least = error;
    }
    branches = binding(observations, constants);
  }
  return best;
}

bool settled(const Constants& before, const Constants& after) {
  constexpr double kSettled = 1e-7;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::abs(after[i] - before[i]) > kSettled * std::abs(before[i])) return false;  // never for NaN
  }
  return true;
}

}  // namespace

Constants solve(const std::vector<Observation>& observations) {
  constexpr int kMostRounds = 50;
  const std::vector<std::size_t> wanted = mentioned_constants(observations);
  if (wanted.empty()) throw SpecError("there are no measurements to fit");
  Constants constants =
      solve_weighted(observations, weights_of(observations), binding(observations, upper_bounds(observations)), wanted);
  for (int round = 0; round < kMostRounds; ++round) {
    const Constants before = constants;
    constants =
        solve_weighted(observations, robust_weights(observations, before), binding(observations, before), wanted);
    if (settled(before, constants)) break;
  }
  for (const std::size_t i : wanted) {
    if (constants[i] < 0) {
      throw SpecError(fmt::format("the measurements make {} negative: {:.4g}", constant_name(i), constants[i]));
    }
  }
  return constants;
}

}  // namespace moeline

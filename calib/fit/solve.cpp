#include "calib/fit/solve.hpp"

#include <fmt/format.h>
#include <Eigen/Dense>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "calib/fit/observation.hpp"

namespace moeline {

// How much each observation counts in the fit.

namespace {

using Weights = std::vector<double>;  ///< of errors in us, by observation

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

/// 1 / measured where timed, 1 / sqrt(max(measured, 20 us)) where profiled: purely relative errors would let a small
/// kernel outweigh attention, absolute ones would see nothing else.
Weights weights_of(const std::vector<Observation>& observations) {
  Weights weights;
  for (const Observation& o : observations) weights.push_back(weight_of(o));
  return weights;
}

/// The same, but for timed rows that are outliers by these constants: their relative error is beyond 25 % and beyond
/// three standard deviations of their family's errors, told from the median; of at least eight rows. The farther off
/// they are, the less they count: their pull on the constants falls as 1 / error^5.
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

using Branches = std::vector<std::uint8_t>;  // that bind: curve by curve, observation by observation

ConstantSet constants_of(const Observation& o) {
  ConstantSet mentioned;
  for_each_term(o, [&](const Term& term) { mentioned.set(static_cast<std::size_t>(term.constant)); });
  return mentioned;
}

std::vector<std::size_t> members(const ConstantSet& set) {
  std::vector<std::size_t> constants;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (set.test(i)) constants.push_back(i);
  }
  return constants;
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
  ConstantSet is_wanted;
  for (const std::size_t constant : wanted) is_wanted.set(constant);
  std::array<Eigen::Index, kConstants> column_of{};
  for (std::size_t i = 0; i < wanted.size(); ++i) column_of[wanted[i]] = static_cast<Eigen::Index>(i);
  Eigen::MatrixXd features = Eigen::MatrixXd::Zero(rows, static_cast<Eigen::Index>(wanted.size()));
  System system;
  system.measured.resize(rows);
  auto branch = branches.begin();
  for (Eigen::Index row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const auto add = [&](const std::vector<Term>& terms) {
      for (const Term& term : terms) {
        if (!is_wanted.test(static_cast<std::size_t>(term.constant))) continue;
        features(row, column_of[static_cast<std::size_t>(term.constant)]) += weights[index] * term.feature;
      }
    };
    double fixed_us = 0;
    for (const Curve& curve : observations[index].curves) {
      const std::size_t binding = *branch++;
      add(curve.always);
      if (!curve.branches.empty()) add(curve.branches[binding].terms);
      fixed_us += curve.fixed_us;
    }
    system.measured(row) = weights[index] * (observations[index].measured_us - fixed_us);
  }
  std::vector<Eigen::Index> columns;
  for (const std::size_t constant : wanted) {
    const Eigen::Index column = column_of[constant];
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
  for (const Observation& o : observations) {
    for_each_term(o, [&](const Term& term) {
      double& least = bounds[static_cast<std::size_t>(term.constant)];
      if (term.feature > 0) least = std::fmin(least, o.measured_us / term.feature);
    });
  }
  return bounds;
}

Branches binding(const std::vector<Observation>& observations, const Constants& constants) {
  Branches branches;
  for (const Observation& o : observations) {
    for (const Curve& curve : o.curves) {
      branches.push_back(static_cast<std::uint8_t>(evaluate(curve, constants).branch));
    }
  }
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

// Of whole curves, whichever branch binds. Infinite where a constant came out negative: no solution.
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

bool settled(const Constants& before, const Constants& after, const std::vector<std::size_t>& wanted) {
  constexpr double kSettled = 1e-7;
  for (const std::size_t i : wanted) {
    if (std::abs(after[i] - before[i]) > kSettled * std::abs(before[i])) return false;  // never for NaN
  }
  return true;
}

// Observations and the constants that they alone mention.
struct ConstantBlock {
  ConstantSet constants;
  std::vector<Observation> observations;
};

// Tables that share no constant do not know of each other: each block is a small problem of its own.
std::vector<ConstantBlock> independent_blocks(const std::vector<Observation>& observations) {
  std::vector<ConstantSet> sets;
  for (const Observation& o : observations) {
    ConstantSet joined = constants_of(o);
    std::erase_if(sets, [&](const ConstantSet& set) {
      const bool meets = (set & joined).any();
      if (meets) joined |= set;
      return meets;
    });
    sets.push_back(joined);
  }
  std::vector<ConstantBlock> blocks;
  for (const ConstantSet& set : sets) blocks.push_back({set, {}});
  for (const Observation& o : observations) {
    const ConstantSet own = constants_of(o);
    const auto block =
        std::find_if(blocks.begin(), blocks.end(), [&](const ConstantBlock& b) { return (b.constants & own).any(); });
    if (block != blocks.end()) block->observations.push_back(o);
  }
  std::erase_if(blocks, [](const ConstantBlock& block) { return block.constants.none(); });
  return blocks;
}

Constants solve_block(const ConstantBlock& block) {
  constexpr int kMostRounds = 50;
  const std::vector<Observation>& observations = block.observations;
  const std::vector<std::size_t> wanted = members(block.constants);
  Constants constants =
      solve_weighted(observations, weights_of(observations), binding(observations, upper_bounds(observations)), wanted);
  for (int round = 0; round < kMostRounds; ++round) {
    const Constants before = constants;
    constants =
        solve_weighted(observations, robust_weights(observations, before), binding(observations, before), wanted);
    if (settled(before, constants, wanted)) break;
  }
  for (const std::size_t i : wanted) {
    if (constants[i] < 0) {
      throw SpecError(fmt::format("the measurements make {} negative: {:.4g}", constant_name(i), constants[i]));
    }
  }
  return constants;
}

}  // namespace

Constants solve(const std::vector<Observation>& observations) {
  const std::vector<ConstantBlock> blocks = independent_blocks(observations);
  if (blocks.empty()) throw SpecError("there are no measurements to fit");
  Constants constants;
  constants.fill(kUnknown);
  for (const ConstantBlock& block : blocks) {
    const Constants solved = solve_block(block);
    for (const std::size_t i : members(block.constants)) constants[i] = solved[i];
  }
  return constants;
}

}  // namespace moeline

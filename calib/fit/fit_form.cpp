#include "calib/fit/fit_form.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>

namespace moeline {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double kFormScale = 0.05;  // relative error from which on rows count as their root

// The curve that is the quickest: itself, or one of its alternatives.
const Curve& chosen(const Curve& curve, std::size_t alternative) {
  return alternative == 0 ? curve : curve.alternatives[alternative - 1];
}

// Features over the measured time, by what binds with these constants.
Matrix features_of(const std::vector<FormRow>& rows, std::span<const double> constants) {
  Matrix features = Matrix::Zero(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(constants.size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto add = [&](const std::vector<Term>& terms) {
      for (const Term& term : terms) {
        features(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(term.constant)) +=
            term.feature / rows[r].measured_us;
      }
    };
    for (const Curve& curve : rows[r].curves) {
      const Evaluation binding = evaluate(curve, constants);
      const Curve& taken = chosen(curve, binding.alternative);
      add(taken.always);
      if (!taken.branches.empty()) add(taken.branches[binding.branch].terms);
    }
  }
  return features;
}

// Of the measured time, what the constants have to make of it: all but what a curve has without them.
Vector targets_of(const std::vector<FormRow>& rows, std::span<const double> constants) {
  Vector targets = Vector::Ones(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const Curve& curve : rows[r].curves) {
      const double fixed_us = chosen(curve, evaluate(curve, constants).alternative).fixed_us;
      targets(static_cast<Eigen::Index>(r)) -= fixed_us / rows[r].measured_us;
    }
  }
  return targets;
}

// x >= 0 with the least |Ax - b|, from A'A and A'b (Lawson and Hanson, Solving Least Squares Problems, chapter 23).
Vector non_negative(const Matrix& normal, const Vector& right) {
  const Eigen::Index n = right.size();
  Vector x = Vector::Zero(n);
  std::vector<bool> free(static_cast<std::size_t>(n), false);
  const double tolerance = 1e-12 * right.cwiseAbs().maxCoeff();
  const auto solve_free = [&] {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index i = 0; i < n; ++i) {
      if (free[static_cast<std::size_t>(i)]) columns.push_back(i);
    }
    const Vector part = normal(columns, columns).ldlt().solve(right(columns));
    Vector whole = Vector::Zero(n);
    for (std::size_t i = 0; i < columns.size(); ++i) whole(columns[i]) = part(static_cast<Eigen::Index>(i));
    return whole;
  };
  for (Eigen::Index round = 0; round < 3 * n; ++round) {
    const Vector gradient = right - normal * x;
    Eigen::Index best = -1;
    for (Eigen::Index i = 0; i < n; ++i) {
      if (free[static_cast<std::size_t>(i)] || !(gradient(i) > tolerance)) continue;
      if (best < 0 || gradient(i) > gradient(best)) best = i;
    }
    if (best < 0) break;
    free[static_cast<std::size_t>(best)] = true;
    while (true) {
      const Vector target = solve_free();
      double step = 1;
      for (Eigen::Index i = 0; i < n; ++i) {
        if (free[static_cast<std::size_t>(i)] && target(i) <= 0 && x(i) != target(i)) {
          step = std::min(step, x(i) / (x(i) - target(i)));
        }
      }
      if (step >= 1) {
        x = target;
        break;
      }
      x += step * (target - x);
      for (Eigen::Index i = 0; i < n; ++i) {
        if (free[static_cast<std::size_t>(i)] && x(i) <= 1e-15) {
          free[static_cast<std::size_t>(i)] = false;
          x(i) = 0;
        }
      }
    }
  }
  return x;
}

// Constants at or above their least value that meet the features best, each row with its weight.
std::vector<double> solve_weighted(const Matrix& features, const Vector& targets, const Vector& weights,
                                   const std::vector<FormPart>& parts) {
  const auto n = static_cast<Eigen::Index>(parts.size());
  Vector least(n);
  for (Eigen::Index i = 0; i < n; ++i) least(i) = parts[static_cast<std::size_t>(i)].least;
  const Vector target = targets - features * least;
  // Columns differ by orders of magnitude.
  Vector scale = (features.array().square().colwise() * weights.array()).colwise().sum().sqrt().matrix().transpose();
  for (Eigen::Index i = 0; i < n; ++i) scale(i) = scale(i) > 0 ? scale(i) : 1;
  const Matrix scaled = features * scale.cwiseInverse().asDiagonal();
  const Matrix weighted = weights.asDiagonal() * scaled;
  Matrix normal = scaled.transpose() * weighted;
  normal.diagonal().array() += 1e-9;  // columns that no row has, or that depend on each other
  const Vector solution = non_negative(normal, weighted.transpose() * target).cwiseQuotient(scale) + least;
  return {solution.begin(), solution.end()};
}

// Of soft L1: a row's squared error counts as if it were weighted so.
Vector soft_weights(const Vector& errors) {
  return (1 + (errors.array() / kFormScale).square()).sqrt().cwiseInverse().matrix();
}

double loss_of(const Vector& errors) { return ((1 + (errors.array() / kFormScale).square()).sqrt() - 1).sum(); }

Vector row_errors(const std::vector<FormRow>& rows, std::span<const double> constants) {
  Vector errors(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    errors(static_cast<Eigen::Index>(i)) = predict(rows[i], constants) / rows[i].measured_us - 1;
  }
  return errors;
}

struct Fit {
  std::vector<double> constants;
  double loss = std::numeric_limits<double>::infinity();
};

// Branches, weights and constants in turn, half a step at a time once they alternate.
Fit descend(const Form& form, const std::vector<FormRow>& rows, std::vector<double> constants) {
  constexpr int kRounds = 40, kWholeSteps = 4;
  Fit best;
  Vector weights = Vector::Ones(static_cast<Eigen::Index>(rows.size()));
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> next =
        solve_weighted(features_of(rows, constants), targets_of(rows, constants), weights, form.parts);
    double change = 0;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const double step = round < kWholeSteps ? next[i] : (constants[i] + next[i]) / 2;
      change =
          std::max(change, std::abs(step - constants[i]) / std::max(1e-9, std::abs(step) + std::abs(constants[i])));
      constants[i] = step;
    }
    const Vector errors = row_errors(rows, constants);
    const double loss = loss_of(errors);
    if (loss < best.loss) best = {constants, loss};
    if (change < 1e-6) break;
    weights = soft_weights(errors);
  }
  return best;
}

// No term can be more than what was measured.
std::vector<double> upper_bounds(const Form& form, const std::vector<FormRow>& rows) {
  std::vector<double> bounds(form.parts.size(), 1);
  std::vector<bool> seen(form.parts.size(), false);
  const auto note = [&](const std::vector<Term>& terms, double us) {
    for (const Term& term : terms) {
      const auto i = static_cast<std::size_t>(term.constant);
      if (!(term.feature > 0)) continue;
      bounds[i] = seen[i] ? std::min(bounds[i], us / term.feature) : us / term.feature;
      seen[i] = true;
    }
  };
  for (const FormRow& row : rows) {
    for (const Curve& curve : row.curves) {
      for (std::size_t a = 0; a <= curve.alternatives.size(); ++a) {
        note(chosen(curve, a).always, row.measured_us);
        for (const Branch& branch : chosen(curve, a).branches) note(branch.terms, row.measured_us);
      }
    }
  }
  return bounds;
}

// Where to begin: what binds depends on it, and one start may end in a corner. Shares of the upper bounds, the same for
// all constants; short tables can afford mixtures, too.
std::vector<std::vector<double>> starts_of(const Form& form, const std::vector<FormRow>& rows) {
  constexpr std::size_t kLong = 3000, kShort = 300, kMixtures = 40;
  const std::vector<double> few = {0.4, 1}, more = {0.1, 0.2, 0.4, 0.7, 1, 1.5}, mixed = {0.02, 0.2, 0.6, 1};
  const std::vector<double> bounds = upper_bounds(form, rows);
  std::vector<std::vector<double>> starts;
  const auto begin_at = [&](const auto& share_of) {
    std::vector<double> start;
    for (std::size_t i = 0; i < form.parts.size(); ++i) {
      start.push_back(std::max(form.parts[i].least, share_of(i) * bounds[i]));
    }
    starts.push_back(std::move(start));
  };
  for (const double share : rows.size() > kLong ? few : more) begin_at([&](std::size_t) { return share; });
  if (rows.size() > kShort) return starts;
  std::uint64_t state = 1;
  for (std::size_t mixture = 0; mixture < kMixtures; ++mixture) {
    begin_at([&](std::size_t) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return mixed[(state >> 33U) % mixed.size()];
    });
  }
  return starts;
}

// FNV-1a: equal on every machine.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return value;
}

// Slices in the order of their hashes, dealt in turn: every part gets some, and neighbours are not in one part.
std::map<std::string, int> deal(const std::vector<FormRow>& rows, int parts) {
  std::map<std::uint64_t, std::string> slices;
  for (const FormRow& row : rows) slices.emplace(hash(row.slice), row.slice);
  std::map<std::string, int> part_of;
  int next = 0;
  for (const auto& [key, slice] : slices) part_of[slice] = next++ % parts;
  return part_of;
}

}  // namespace

double digits(double value, int count) { return std::strtod(fmt::format("{:.{}g}", value, count).c_str(), nullptr); }

double predict(const FormRow& row, std::span<const double> constants) {
  double us = 0;
  for (const Curve& curve : row.curves) us += evaluate(curve, constants).us;
  return us;
}

std::vector<double> fit_form(const Form& form, const std::vector<FormRow>& rows) {
  Fit best;
  for (const std::vector<double>& start : starts_of(form, rows)) {
    const Fit fit = descend(form, rows, start);
    if (fit.loss < best.loss) best = fit;
  }
  return best.constants;
}

std::vector<RowFit> fit_without_slices(const Form& form, const std::vector<FormRow>& rows, int parts) {
  const std::map<std::string, int> part_of = deal(rows, parts);
  std::vector<RowFit> fits;
  if (part_of.size() < 2) return fits;
  for (int part = 0; part < parts; ++part) {
    RowFit fit;
    std::vector<FormRow> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_seen = part_of.at(rows[i].slice) != part;
      (is_seen ? fit.seen : fit.left_out).push_back(i);
      if (is_seen) seen.push_back(rows[i]);
    }
    if (fit.left_out.empty()) continue;
    const std::vector<double> constants = fit_form(form, seen);
    for (const FormRow& row : rows) fit.us.push_back(predict(row, constants));
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace moeline

#include "calib/fit/fit_correction.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>

namespace moeline {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// How many rows it takes to pull a knot as hard as a neighbour does, and as 1 does; the relative error from which on
// rows count less: larger than a form's (fit_form), as what a curve misses by much is what a grid is for.
constexpr double kNeighbour = 0.2, kOne = 0.05, kGridScale = 0.1;

// The values that were measured where they are few; else at equal ratios from the least to the most.
std::vector<double> knots_of(const std::set<double>& values, int count) {
  std::vector<double> knots;
  if (values.size() <= static_cast<std::size_t>(count)) {
    for (const double value : values) knots.push_back(digits(value, 8));
  } else {
    const double low = digits(*values.begin(), 8), high = digits(*values.rbegin(), 8);
    knots.push_back(low);
    for (int i = 1; i + 1 < count; ++i) knots.push_back(digits(low * std::pow(high / low, i / (count - 1.0)), 3));
    knots.push_back(high);
  }
  const auto rises = [](double a, double b) { return !(a < b); };
  knots.erase(std::unique(knots.begin(), knots.end(), rises), knots.end());
  return knots;
}

std::vector<GridAxis> axes_of(const Grid& grid, const std::vector<FormRow>& rows, const RowFit& fit) {
  std::vector<GridAxis> axes;
  for (const auto& [dimension, count] : grid) {
    std::set<double> values;
    for (const std::size_t i : fit.seen) {
      const auto value = rows[i].dimensions.find(dimension);
      values.insert(value == rows[i].dimensions.end() ? 0 : value->second);
    }
    if (!(*values.begin() > 0)) continue;
    GridAxis axis{dimension, knots_of(values, count)};
    if (axis.knots.size() > 1) axes.push_back(std::move(axis));
  }
  return axes;
}

// What holds knots to their neighbours and to 1, as a quadratic form.
Matrix stiffness(const std::vector<GridAxis>& axes) {
  const auto knots = static_cast<Eigen::Index>(knots_of(axes));
  Matrix held = kOne * Matrix::Identity(knots, knots);
  Eigen::Index stride = knots;
  for (const GridAxis& axis : axes) {
    const Eigen::Index across = stride;
    stride /= static_cast<Eigen::Index>(axis.knots.size());
    for (Eigen::Index a = 0; a < knots; ++a) {
      const Eigen::Index b = a + stride;
      if (a % across + stride >= across) continue;  // the axis ends here
      held(a, a) += kNeighbour;
      held(b, b) += kNeighbour;
      held(a, b) -= kNeighbour;
      held(b, a) -= kNeighbour;
    }
  }
  return held;
}

// A row's part in the least squares: what its error is made of.
struct Residual {
  double ratio = 0;  // predicted over measured time, by the curve
  std::vector<Corner> corners;
};

// The offsets of all gains from 1, by weights of the rows that the offsets before leave.
Vector next_offsets(const std::vector<Residual>& residuals, const Matrix& held, const Vector& before) {
  Matrix normal = held;  // its lower triangle alone
  Vector right = Vector::Zero(held.rows());
  for (const auto& [ratio, corners] : residuals) {
    double error = ratio - 1;
    for (const auto& [knot, share] : corners) error += ratio * share * before(static_cast<Eigen::Index>(knot));
    const double weight = 1 / std::hypot(1, error / kGridScale);
    for (std::size_t a = 0; a < corners.size(); ++a) {  // whose knots rise
      const auto row = static_cast<Eigen::Index>(corners[a].knot);
      right(row) += weight * ratio * corners[a].share * (1 - ratio);
      for (std::size_t b = 0; b <= a; ++b) {
        normal(row, static_cast<Eigen::Index>(corners[b].knot)) +=
            weight * ratio * ratio * corners[a].share * corners[b].share;
      }
    }
  }
  return normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
}

}  // namespace

Correction fit_correction(const Grid& grid, const std::vector<FormRow>& rows, const RowFit& fit) {
  constexpr int kRounds = 5;
  constexpr double kLeast = -0.5, kMost = 1;  // a curve that is farther off is not one to be corrected
  Correction correction;
  correction.axes = axes_of(grid, rows, fit);
  if (correction.axes.empty()) return correction;
  std::vector<Residual> residuals;
  for (const std::size_t i : fit.seen) {
    residuals.push_back({fit.us[i] / rows[i].measured_us, corners_at(correction.axes, rows[i].dimensions)});
  }
  const Matrix held = stiffness(correction.axes);
  Vector offsets = Vector::Zero(held.rows());
  for (int round = 0; round < kRounds; ++round) offsets = next_offsets(residuals, held, offsets);
  for (const double offset : offsets) {
    correction.gains.push_back(1 + kGainUnit * std::round(std::clamp(offset, kLeast, kMost) / kGainUnit));
  }
  return correction;
}

std::vector<double> corrected(const Correction& correction, const std::vector<FormRow>& rows, const RowFit& fit) {
  MeasuredRange range;
  for (const std::size_t i : fit.seen) extend(range, rows[i].dimensions);
  std::vector<double> us;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    us.push_back(fit.us[i] * gain_at(correction, range, rows[i].dimensions));
  }
  return us;
}

std::vector<double> predict_left_out(const Grid& grid, const std::vector<FormRow>& rows,
                                     const std::vector<RowFit>& fits) {
  std::vector<double> predictions(fits.empty() ? 0 : rows.size());
  for (const RowFit& fit : fits) {
    const std::vector<double> us = corrected(fit_correction(grid, rows, fit), rows, fit);
    for (const std::size_t i : fit.left_out) predictions[i] = us[i];
  }
  return predictions;
}

std::vector<double> errors_of(const std::vector<FormRow>& rows, const std::vector<double>& predicted_us) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted_us.size(); ++i) errors.push_back(predicted_us[i] / rows[i].measured_us - 1);
  return errors;
}

GridChoice choose_grid(const std::vector<Grid>& grids, const std::vector<FormRow>& rows,
                       const std::vector<RowFit>& fits) {
  constexpr double kPays = 0.9, kAsLongTail = 1.04;
  GridChoice choice;
  if (fits.empty()) return choice;  // nothing tells whether one pays
  choice.left_out = predict_left_out({}, rows, fits);
  choice.curve = summary_of(errors_of(rows, choice.left_out));
  double least = kPays * choice.curve.median_abs;
  for (const Grid& grid : grids) {
    std::vector<double> left_out = predict_left_out(grid, rows, fits);
    const ErrorSummary errors = summary_of(errors_of(rows, left_out));
    if (errors.median_abs >= least || errors.p95_abs > kAsLongTail * choice.curve.p95_abs) continue;
    choice.grid = grid;
    choice.left_out = std::move(left_out);
    least = errors.median_abs;
  }
  return choice;
}

}  // namespace moeline

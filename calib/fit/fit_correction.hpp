// The correction of a family's curve, and whether it pays on rows that neither has seen.
#pragma once

#include <map>
#include <vector>

#include "calib/fit/assess.hpp"
#include "calib/fit/fit_form.hpp"
#include "hardware/correction.hpp"

namespace moeline {

/// How many knots a correction may have in each dimension. Empty: a grid of none, the curve alone.
using Grid = std::map<Dimension, int>;

/// Least squares of the relative errors of curve x gain at the knots, over the rows that the fit saw; rows far off
/// count less, as in fit_form. Knots are held to their neighbours and, weakly, to 1. A dimension that does not vary, or
/// has zeros, has no axis.
[[nodiscard]] Correction fit_correction(const Grid& grid, const std::vector<FormRow>& rows, const RowFit& fit);

/// us of each row by the fit with a correction, inside of what the fit saw.
[[nodiscard]] std::vector<double> corrected(const Correction& correction, const std::vector<FormRow>& rows,
                                            const RowFit& fit);

/// us of each row by curve and correction that saw none of its slice. Empty without fits.
[[nodiscard]] std::vector<double> predict_left_out(const Grid& grid, const std::vector<FormRow>& rows,
                                                   const std::vector<RowFit>& fits);

/// predicted / measured - 1 of each row; none without predictions.
[[nodiscard]] std::vector<double> errors_of(const std::vector<FormRow>& rows, const std::vector<double>& predicted_us);

struct GridChoice {
  Grid grid;                     ///< empty where none pays
  std::vector<double> left_out;  ///< us of each row, as predict_left_out has them
  ErrorSummary curve;            ///< of the curve alone
};

/// The grid that pays: on rows left out of both, the median error is less than 9/10 of the curve's, and the 95th
/// percentile is not above it. Of several that with the least median.
[[nodiscard]] GridChoice choose_grid(const std::vector<Grid>& grids, const std::vector<FormRow>& rows,
                                     const std::vector<RowFit>& fits);

}  // namespace moeline

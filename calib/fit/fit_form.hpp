// The constants of one family's form, from rows of its tables alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "curves/form.hpp"
#include "hardware/measured_range.hpp"

namespace moeline {

/// One row of a table: the kernels that ran, as curves of the form, and how long they took together.
struct FormRow {
  std::vector<Curve> curves;
  double measured_us = 0;
  Dimensions dimensions{};
  std::string where{};  ///< "gemm_trtllm.csv:17 linear:dtype=bf16,..."
  std::string slice{};  ///< rows of the same slice are left out of a fit together
};

/// To so many digits: profiles hold constants with five.
[[nodiscard]] double digits(double value, int count);

[[nodiscard]] double predict(const FormRow& row, std::span<const double> constants);

/// Least squares of the relative errors, with constants at or above their least value (Lawson and Hanson's method), and
/// rows counting the less the farther they are off: errors beyond 5 % count as their root (soft L1), so that rows
/// which a machine's hiccup made pull little. Which branch and alternative binds is chosen anew with each solution; of
/// those tried the best is kept. A constant that no row shows stays at its least value.
[[nodiscard]] std::vector<double> fit_form(const Form& form, const std::vector<FormRow>& rows);

/// Which rows a fit saw, and what it says of all.
struct RowFit {
  std::vector<std::size_t> seen, left_out;
  std::vector<double> us;  ///< of every row
};

/// Whole slices are dealt, by name, into `parts` that are left out in turn: every row is left out of one fit. None
/// where there is one slice alone.
[[nodiscard]] std::vector<RowFit> fit_without_slices(const Form& form, const std::vector<FormRow>& rows, int parts);

}  // namespace moeline

// What to measure next: where a family's error is largest, and what that error is made of.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "calib/fit/assess.hpp"
#include "calib/fit/stack_tables.hpp"

namespace moeline {

enum class Cause {
  leverage,   ///< nothing else tells what this row tells: fitted it is met, left out it is not
  structure,  ///< its neighbours are off in the same direction: the curve lacks something there
  noise       ///< its neighbours are not: one of the rows is wrong, or something that no dimension tells differs
};

struct Advice {
  std::string family;
  std::size_t worst = 0;  ///< observation with the family's largest error
  double error = 0;       ///< of that: predicted / measured - 1, left out where it was
  double fitted_error = 0;
  Cause cause{};
  std::string measure;  ///< the sentence
};

/// One per family of timed observations that has at least three, largest error first. `left_out`: empty without
/// cross-validation. A neighbour is the nearest in the logarithms of the dimensions, rows of the same point aside.
[[nodiscard]] std::vector<Advice> measure_next(const std::vector<Observation>& observations, const Predictions& fitted,
                                               const Predictions& left_out);

// How well the families of a serving stack are met, which of their rows are missed most, and what to measure next.

struct MissedRow {
  const FormRow* row = nullptr;
  double predicted_us = 0;  ///< by a fit that did not see its slice, where there is more than one
  double error = 0;         ///< predicted / measured - 1
};

/// Neighbouring values of a dimension between which nothing was measured.
struct ValueGap {
  Dimension dimension{};
  double low = 0, high = 0;
};

/// The rows at one value of a dimension.
struct Weakness {
  Dimension dimension{};
  double value = 0;
  int rows = 0;
  double median_abs = 0;
};

struct FamilyReport {
  std::string family;
  const Form* form = nullptr;
  int rows = 0;
  ErrorSummary held_out;  ///< of rows whose whole slice the fit did not see; NaN of a family that is one slice
  /// |e| of the same rows by the curve alone, where it has a correction; else NaN.
  double curve_median_abs = std::numeric_limits<double>::quiet_NaN();
  double curve_p95_abs = std::numeric_limits<double>::quiet_NaN();
  ErrorSummary in_sample;           ///< of the fit to all of them
  std::vector<MissedRow> worst;     ///< the worst first
  std::optional<ValueGap> gap;      ///< the widest, where neighbours are more than a doubling apart
  std::optional<Weakness> weakest;  ///< the worst met, where it is half as bad again as the family
};

/// By family, the one with the largest 95th percentile first. `worst`: rows of each.
[[nodiscard]] std::vector<FamilyReport> report_of(const StackCalibration& calibration, std::size_t worst);

}  // namespace moeline

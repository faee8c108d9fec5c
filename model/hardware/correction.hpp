// What a family's curve misses where its table is dense: a coarse grid of gains, measured over predicted time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hardware/measured_range.hpp"

namespace moeline {

class Spec;

/// One dimension of a grid.
struct GridAxis {
  Dimension dimension{};
  std::vector<double> knots;  ///< at least two, positive, increasing
};

/// Gains at all knots, and how far the curve is without them. Between knots a gain is interpolated linearly, in the
/// logarithms of the dimensions. Outside of the measured box the gain at its edge fades: the curve carries shapes that
/// are far from all that was measured by itself.
struct Correction {
  std::vector<GridAxis> axes;
  std::vector<double> gains;          ///< those along the last axis side by side; empty: there is no correction
  double curve_median_abs_error = 0;  ///< of the curve alone, on the rows that the family's own errors are of
  double curve_p95_abs_error = 0;

  [[nodiscard]] bool empty() const { return gains.empty(); }
};

/// Gains are written to three decimals.
inline constexpr double kGainUnit = 1e-3;

/// A knot of a grid, and its share in what lies at some place.
struct Corner {
  std::size_t knot = 0;
  double share = 0;
};

[[nodiscard]] std::size_t knots_of(const std::vector<GridAxis>& axes);

/// The corners of the cell that holds a kernel, at most two for each axis; shares add up to 1. What lies beyond the
/// outermost knots counts as there. REQUIRES: a value of each axis' dimension.
[[nodiscard]] std::vector<Corner> corners_at(const std::vector<GridAxis>& axes, const Dimensions& at);

/// By how much longer a kernel takes than its curve says, times. 1 without a correction, on other SMs or ranks than
/// `range` has, and where a dimension lies by a factor of four or more outside of it.
[[nodiscard]] double gain_at(const Correction& correction, const MeasuredRange& range, const Dimensions& at);

/// "{knots: {m: [1, 32, 1024], k: [128, 65536]}, thousandths: [-12 30, 5 8, 0 1], curve_median_abs_error: 0.04, ...}":
/// a word of `thousandths` has the gains along the last axis.
[[nodiscard]] std::string to_yaml(const Correction& correction);

/// Reads it back. Throws SpecError (file, line, key) for knots that do not increase or of a dimension that `range` has
/// not, and for gains that are not whole numbers, too large, too many or too few.
[[nodiscard]] Correction read_correction(const Spec& spec, const MeasuredRange& range);

}  // namespace moeline

#include "hardware/correction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/spec.hpp"

namespace moeline {

std::size_t knots_of(const std::vector<GridAxis>& axes) {
  std::size_t knots = 1;
  for (const GridAxis& axis : axes) knots *= axis.knots.size();
  return knots;
}

std::vector<Corner> corners_at(const std::vector<GridAxis>& axes, const Dimensions& at) {
  std::vector<Corner> corners = {{0, 1}};
  for (const auto& [dimension, knots] : axes) {
    const double value = std::clamp(at.at(dimension), knots.front(), knots.back());
    const auto next = std::upper_bound(knots.begin() + 1, knots.end() - 1, value);
    const auto cell = static_cast<std::size_t>(next - knots.begin()) - 1;
    const double share = std::log(value / knots[cell]) / std::log(knots[cell + 1] / knots[cell]);
    std::vector<Corner> finer;
    for (const Corner& corner : corners) {
      const std::size_t knot = corner.knot * knots.size() + cell;
      if (share < 1) finer.push_back({knot, corner.share * (1 - share)});
      if (share > 0) finer.push_back({knot + 1, corner.share * share});
    }
    corners = std::move(finer);
  }
  return corners;
}

namespace {

// Of a gain at the edge of what was measured, beyond it: all there, none where a dimension is four times as far out.
// Other numbers of SMs and ranks are other kernels.
double kept_share(const std::vector<Outside>& crossed) {
  constexpr double kNone = 4;
  double share = 1;
  for (const Outside& each : crossed) {
    const bool is_size = each.dimension != Dimension::sms && each.dimension != Dimension::ranks;
    if (!is_size || std::isnan(each.bound) || each.bound <= 0 || each.value <= 0) return 0;
    share *= std::max(0.0, 1 - std::abs(std::log(each.value / each.bound)) / std::log(kNone));
  }
  return share;
}

}  // namespace

double gain_at(const Correction& correction, const MeasuredRange& range, const Dimensions& at) {
  const double kept = correction.empty() ? 0 : kept_share(outside(range, at));
  if (kept == 0) return 1;
  const auto is_known = [&](const GridAxis& axis) { return at.contains(axis.dimension); };
  if (!std::all_of(correction.axes.begin(), correction.axes.end(), is_known)) return 1;
  double gain = 0;
  for (const auto& [knot, share] : corners_at(correction.axes, at)) gain += share * correction.gains[knot];
  return 1 + kept * (gain - 1);
}

// Corrections as they stand in a profile.

namespace {

constexpr int kLeastGain = -900, kMostGain = 9000;  // thousandths: from a tenth to ten times

std::vector<GridAxis> read_axes(const Spec& knots, const MeasuredRange& range) {
  knots.expect(dimension_names());
  std::vector<GridAxis> axes;
  for (const std::string& name : knots.keys()) {
    const auto is_named = [&](const auto& side) { return name_of(side.first) == name; };
    const auto side = std::find_if(range.begin(), range.end(), is_named);
    if (side == range.end()) throw knots.error(name, "is no dimension of the family's range");
    axes.push_back({side->first, knots.numbers(name, 1e-9, 1e30)});
    const std::vector<double>& values = axes.back().knots;
    const bool rising = std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
    if (values.size() < 2 || !rising) throw knots.error(name, "must be at least two knots, each above the one before");
  }
  return axes;
}

// Numbers apart by blanks. A profile has thousands, so they are read where they stand.
void read_row(const Spec& spec, const std::string& row, std::vector<double>& gains) {
  const char* const end = row.data() + row.size();
  for (const char* at = row.data(); at != end;) {
    const char* const after = std::find(at, end, ' ');
    int thousandths = 0;
    const auto [stop, failed] = std::from_chars(at, after, thousandths);
    if (failed != std::errc() || stop != after || thousandths < kLeastGain || thousandths > kMostGain) {
      throw spec.error("thousandths", fmt::format("'{}' is not a whole number from {} to {}", std::string(at, after),
                                                  kLeastGain, kMostGain));
    }
    gains.push_back(1 + thousandths * kGainUnit);
    at = after == end ? end : after + 1;
  }
}

}  // namespace

std::string to_yaml(const Correction& correction) {
  std::vector<std::string> axes, rows;
  for (const GridAxis& axis : correction.axes) {
    axes.push_back(fmt::format("{}: [{:.8g}]", name_of(axis.dimension), fmt::join(axis.knots, ", ")));
  }
  const std::size_t across = correction.axes.back().knots.size();
  for (std::size_t knot = 0; knot < correction.gains.size(); ++knot) {
    const std::string gain = fmt::format("{}", std::lround((correction.gains[knot] - 1) / kGainUnit));
    knot % across == 0 ? rows.push_back(gain) : void(rows.back() += " " + gain);
  }
  return fmt::format(
      "{{knots: {{{}}}, thousandths: [{}], curve_median_abs_error: {:.3g}, curve_p95_abs_error: {:.3g}}}",
      fmt::join(axes, ", "), fmt::join(rows, ", "), correction.curve_median_abs_error, correction.curve_p95_abs_error);
}

Correction read_correction(const Spec& spec, const MeasuredRange& range) {
  spec.expect({"knots", "thousandths", "curve_median_abs_error", "curve_p95_abs_error"});
  Correction correction;
  correction.axes = read_axes(spec.map("knots"), range);
  if (correction.axes.empty()) throw spec.error("knots", "must name at least one dimension");
  const std::size_t across = correction.axes.back().knots.size(), knots = knots_of(correction.axes);
  for (const std::string& row : spec.texts("thousandths")) {
    read_row(spec, row, correction.gains);
    if (correction.gains.size() % across != 0 || correction.gains.empty()) break;
  }
  if (correction.gains.size() != knots) {
    throw spec.error("thousandths",
                     fmt::format("must be {} times {} numbers, as the knots are", knots / across, across));
  }
  correction.curve_median_abs_error = spec.number("curve_median_abs_error", 0, 1e6);
  correction.curve_p95_abs_error = spec.number("curve_p95_abs_error", 0, 1e6);
  return correction;
}

}  // namespace moeline

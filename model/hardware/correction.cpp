#include "hardware/correction.hpp"

#include <algorithm>
#include <cmath>

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

double gain_at(const Correction& correction, const MeasuredRange& range, const Dimensions& at) {
  if (correction.empty() || !outside(range, at).empty()) return 1;
  const auto is_known = [&](const GridAxis& axis) { return at.contains(axis.dimension); };
  if (!std::all_of(correction.axes.begin(), correction.axes.end(), is_known)) return 1;
  double gain = 0;
  for (const auto& [knot, share] : corners_at(correction.axes, at)) gain += share * correction.gains[knot];
  return gain;
}

}  // namespace moeline

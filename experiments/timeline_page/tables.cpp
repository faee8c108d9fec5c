#include "experiments/timeline_page/tables.hpp"

#include <fmt/format.h>

#include <array>

namespace moeline {
namespace {

std::vector<std::string> row(const std::string& what, Time time, Time span) {
  return {what, fmt::format("{:.1f}", to_us(time)), fmt::format("{:.1f}", 100 * ratio(time, span))};
}

PageTable table(const char* title, const char* what) { return {title, "lrr", {what, "us", "% of span"}, {}}; }

PageTable reasons(const Explanation& e) {
  std::array<Time, kPathReasons> times{};
  for (const PathStep& step : e.path) times[static_cast<std::size_t>(step.reason)] += step.end - step.start;
  PageTable reasons = table("What the end waited for", "reason");
  for (std::size_t i = 0; i < kPathReasons; ++i) {
    if (times[i] > Time::zero()) reasons.rows.push_back(row(name_of(static_cast<PathReason>(i)), times[i], e.span));
  }
  return reasons;
}

PageTable blames(const Explanation& e) {
  constexpr std::size_t kMost = 20;
  PageTable blames = table("Blame: the same, by class, phase and reason", "what");
  Time rest = e.span;
  for (const Blame& blame : e.blame) {
    if (blames.rows.size() == kMost) break;
    blames.rows.push_back(row(title_of(blame), blame.time, e.span));
    rest -= blame.time;
  }
  if (e.blame.size() > kMost) blames.rows.push_back(row(fmt::format("{} more", e.blame.size() - kMost), rest, e.span));
  return blames;
}

PageTable bounds(const Explanation& e) {
  PageTable bounds = table("No order of these kernels is shorter than", "bound");
  for (const Bound& bound : e.bounds) bounds.rows.push_back(row(bound.what, bound.time, e.span));
  return bounds;
}

}  // namespace

std::vector<PageTable> tables_of(const Explanation& explanation) {
  return {reasons(explanation), blames(explanation), bounds(explanation)};
}

}  // namespace moeline

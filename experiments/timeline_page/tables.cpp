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

PageTable largest(PageTable table, const std::vector<Blame>& blames, Time span) {
  constexpr std::size_t kMost = 20;
  Time rest{};
  for (const Blame& blame : blames) {
    if (table.rows.size() < kMost) {
      table.rows.push_back(row(title_of(blame), blame.time, span));
    } else {
      rest += blame.time;
    }
  }
  if (blames.size() > kMost) table.rows.push_back(row(fmt::format("{} more", blames.size() - kMost), rest, span));
  return table;
}

PageTable blames(const Explanation& e) {
  return largest(table("Blame: the same, by class, phase and reason", "what"), e.blame, e.span);
}

PageTable idle(const Explanation& e) {
  const std::string title =
      fmt::format("Why {} is not all it takes: time without such work, while the end waits for", e.idle_of);
  return largest(table(title.c_str(), "what"), e.idle, e.span);
}

PageTable sensitivities(const Explanation& e) {
  return {"What would shorten it: share of the span saved with so much less of its time", "lrrrrrl", sensitivity_head(),
          sensitivity_rows(e.sensitivities)};
}

PageTable bounds(const Explanation& e) {
  PageTable bounds = table("With these kernels in this order it takes no less than", "bound");
  for (const Bound& bound : e.bounds) bounds.rows.push_back(row(bound.what, bound.time, e.span));
  return bounds;
}

}  // namespace

std::vector<PageTable> tables_of(const Explanation& explanation) {
  std::vector<PageTable> tables = {reasons(explanation), blames(explanation), sensitivities(explanation),
                                   bounds(explanation)};
  if (!explanation.idle_of.empty()) tables.push_back(idle(explanation));
  return tables;
}

}  // namespace moeline

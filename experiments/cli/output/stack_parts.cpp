#include "experiments/cli/output/stack_parts.hpp"

#include <fmt/format.h>

#include <cmath>

namespace moeline {
namespace {

std::string unsigned_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:.1f}", 100 * share); }
std::string signed_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:+.1f}", 100 * share); }

void add_cells(const ErrorSummary& summary, std::vector<std::string>& cells) {
  cells.push_back(signed_percent_of(summary.median));
  cells.push_back(unsigned_percent_of(summary.median_abs));
  cells.push_back(unsigned_percent_of(summary.p95_abs));
}

// "batch between 64 and 512 (8 times)"
std::string text_of(const ValueGap& gap) {
  return fmt::format("{} between {} and {} ({:.2g} times)", name_of(gap.dimension), short_number(gap.low),
                     short_number(gap.high), gap.high / gap.low);
}

std::string text_of(const Weakness& weakness) {
  return fmt::format("{} {}: {:.1f} over {} rows", name_of(weakness.dimension), short_number(weakness.value),
                     100 * weakness.median_abs, weakness.rows);
}

PageMetric metric(const char* name, const char* unit, Better better, const std::vector<FamilyReport>& reports,
                  const auto& value_of) {
  PageMetric metric{name, unit, better, {}};
  for (const FamilyReport& report : reports) metric.values.push_back(value_of(report));
  return metric;
}

}  // namespace

TextTable families_table(const std::vector<FamilyReport>& reports) {
  TextTable table("llrrrrrrrrr");
  table.row({"family", "form", "rows", "held-out: median e", "median |e|", "95 %", "curve alone: median |e|", "95 %",
             "in-sample: median e", "median |e|", "95 %"});
  for (const FamilyReport& report : reports) {
    std::vector<std::string> cells = {report.family, report.form->name, fmt::format("{}", report.rows)};
    add_cells(report.held_out, cells);
    cells.push_back(unsigned_percent_of(report.curve_median_abs));
    cells.push_back(unsigned_percent_of(report.curve_p95_abs));
    add_cells(report.in_sample, cells);
    table.row(std::move(cells));
  }
  return table;
}

TextTable worst_table(const std::vector<FamilyReport>& reports) {
  TextTable table("lrrrl");
  table.row({"family", "error %", "measured us", "predicted us", "row"});
  for (const FamilyReport& report : reports) {
    for (const MissedRow& missed : report.worst) {
      table.row({report.family, fmt::format("{:+.0f}", 100 * missed.error),
                 fmt::format("{:.1f}", missed.row->measured_us), fmt::format("{:.1f}", missed.predicted_us),
                 missed.row->where});
    }
  }
  return table;
}

TextTable next_table(const std::vector<FamilyReport>& reports) {
  TextTable table("lrll");
  table.row({"family", "95 %", "weakest: median |e|", "widest gap"});
  for (const FamilyReport& report : reports) {
    const bool held_out = !std::isnan(report.held_out.p95_abs);
    std::string weakest = report.weakest ? text_of(*report.weakest) : "";
    if (!held_out) weakest = "one slice alone: another one, to be left out";
    table.row({report.family, unsigned_percent_of(held_out ? report.held_out.p95_abs : report.in_sample.p95_abs),
               weakest, report.gap ? text_of(*report.gap) : ""});
  }
  return table;
}

TextTable repeatability_table(const std::vector<Repeatability>& repeatability) {
  TextTable table("llrrrr");
  table.row({"rows", "beside", "OPs", "median", "median | |", "95 %"});
  for (const Repeatability& each : repeatability) {
    std::vector<std::string> cells = {each.rows, each.beside, fmt::format("{}", each.pairs)};
    add_cells(each.deviation, cells);
    table.row(std::move(cells));
  }
  return table;
}

void add_families(const std::vector<FamilyReport>& reports, Page& page) {
  PageAxis families;
  families.label = "family";
  for (const FamilyReport& report : reports) {
    families.at.push_back(families.values.size());
    families.values.push_back(report.family);
  }
  page.axes = {families};
  page.failures.assign(reports.size(), "");
  constexpr const char* kFirst = "held-out 95 % of |e|";
  page.metrics = {
      metric(kFirst, "%", Better::lower, reports, [](const FamilyReport& r) { return 100 * r.held_out.p95_abs; }),
      metric("held-out median |e|", "%", Better::lower, reports,
             [](const FamilyReport& r) { return 100 * r.held_out.median_abs; }),
      metric("held-out median e", "%", Better::neither, reports,
             [](const FamilyReport& r) { return 100 * r.held_out.median; }),
      metric("in-sample 95 % of |e|", "%", Better::lower, reports,
             [](const FamilyReport& r) { return 100 * r.in_sample.p95_abs; }),
      metric("in-sample median |e|", "%", Better::lower, reports,
             [](const FamilyReport& r) { return 100 * r.in_sample.median_abs; }),
      metric("in-sample median e", "%", Better::neither, reports,
             [](const FamilyReport& r) { return 100 * r.in_sample.median; }),
      metric("rows", "", Better::neither, reports, [](const FamilyReport& r) { return r.rows; })};
  page.plots.emplace_back(LinePlot{kFirst, families.label, ""});
}

}  // namespace moeline

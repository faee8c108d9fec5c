#include "experiments/cli/output/calibration_output.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text_table.hpp"
#include "calib/fit/stack_report.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

constexpr const char* kColumns =
    "Held-out: of rows whose whole slice the fit did not see; curve alone: of the same rows without the correction; "
    "in-sample: of the fit to all of them.";
constexpr const char* kRepeatability = "How far two times of one OP are apart, which no fit can undercut";
constexpr const char* kErrors = "Errors are predicted / measured - 1, in %.";

std::string unsigned_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:.1f}", 100 * share); }
std::string signed_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:+.1f}", 100 * share); }

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

// Of the errors that `of` has: median, median of the amounts, 95 % quantile of these.
template <class T, class Of>
void add_summary_columns(Fields<T>& fields, const std::string& median, const std::string& median_abs, Of of) {
  fields.column(median, [=](auto& t) { return signed_percent_of(of(t).median); }, {.align = 'r'})
      .column(median_abs, [=](auto& t) { return unsigned_percent_of(of(t).median_abs); }, {.align = 'r'})
      .column("95 %", [=](auto& t) { return unsigned_percent_of(of(t).p95_abs); }, {.align = 'r'});
}

TextTable families_table(const std::vector<FamilyReport>& reports) {
  Fields<FamilyReport> fields;
  fields.column("family", &FamilyReport::family)
      .column("form", [](auto& r) { return r.form->name; })
      .column("rows", &FamilyReport::rows);
  add_summary_columns(fields, "held-out: median e", "median |e|", [](auto& r) { return r.held_out; });
  fields
      .column("curve alone: median |e|", [](auto& r) { return unsigned_percent_of(r.curve_median_abs); },
              {.align = 'r'})
      .column("95 %", [](auto& r) { return unsigned_percent_of(r.curve_p95_abs); }, {.align = 'r'});
  add_summary_columns(fields, "in-sample: median e", "median |e|", [](auto& r) { return r.in_sample; });
  return fields.table(reports);
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
  const auto is_held_out = [](const FamilyReport& r) { return !std::isnan(r.held_out.p95_abs); };
  const auto p95 = [=](const FamilyReport& r) {
    return unsigned_percent_of(is_held_out(r) ? r.held_out.p95_abs : r.in_sample.p95_abs);
  };
  const auto weakest = [=](const FamilyReport& r) -> std::string {
    if (!is_held_out(r)) return "one slice alone: another one, to be left out";
    return r.weakest ? text_of(*r.weakest) : "";
  };
  return Fields<FamilyReport>()
      .column("family", &FamilyReport::family)
      .column("95 %", p95, {.align = 'r'})
      .column("weakest: median |e|", weakest)
      .column("widest gap", [](auto& r) { return r.gap ? text_of(*r.gap) : ""; })
      .table(reports);
}

TextTable repeatability_table(const std::vector<Repeatability>& repeatability) {
  Fields<Repeatability> fields;
  fields.column("rows", &Repeatability::rows)
      .column("beside", &Repeatability::beside)
      .column("OPs", &Repeatability::pairs);
  add_summary_columns(fields, "median", "median | |", [](auto& r) { return r.deviation; });
  return fields.table(repeatability);
}

// The families as a page's points.
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

}  // namespace

std::string stack_text(const StackCalibration& calibration) {
  std::string text = fmt::format("{} ({}): {}\n\n{}", calibration.kernels.name, calibration.kernels.date,
                                 calibration.kernels.source, families_table(report_of(calibration, 0)).text());
  text += fmt::format("\n{} {}\n", kErrors, kColumns);
  for (const std::string& line : calibration.log) text += line + "\n";
  return text;
}

std::string stack_report_text(const StackCalibration& calibration) {
  constexpr std::size_t kWorst = 5;
  const std::vector<FamilyReport> reports = report_of(calibration, kWorst);
  std::string text = fmt::format("\nThe rows that are missed most\n{}", worst_table(reports).text());
  text += fmt::format("\nWhat to measure next\n{}", next_table(reports).text());
  if (calibration.repeatability.empty()) return text;
  return text + fmt::format("\n{}\n{}", kRepeatability, repeatability_table(calibration.repeatability).text());
}

Page stack_page(const StackCalibration& calibration, const std::string& machine) {
  constexpr std::size_t kWorst = 12;
  const KernelSet& set = calibration.kernels;
  const std::vector<FamilyReport> reports = report_of(calibration, kWorst);
  Page page;
  page.title = fmt::format("Kernel set {} of {}", set.name, machine);
  page.summary = {fmt::format("Fitted to {}, month {}.", set.source, set.date),
                  fmt::format("{} {}", kErrors, kColumns)};
  page.before = {{.title = "What to measure next", .tables = {next_table(reports)}},
                 {.title = "The rows that are missed most", .tables = {worst_table(reports)}}};
  if (!calibration.repeatability.empty()) {
    page.after.push_back({.title = kRepeatability, .tables = {repeatability_table(calibration.repeatability)}});
  }
  if (!calibration.log.empty()) page.after.push_back({.title = "Rows left out", .lines = calibration.log});
  add_families(reports, page);
  return page;
}

}  // namespace moeline

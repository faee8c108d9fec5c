#include "calib/fit/stack_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace moeline {
namespace {

constexpr double kDoubling = 2.05;      // grids go by powers of two, and some are rounded
constexpr std::size_t kEnoughRows = 5;  // of which a median says something
constexpr double kWeak = 1.5;           // times the family's median

std::vector<MissedRow> worst_of(const StackFamily& family, const std::vector<double>& errors, std::size_t count) {
  std::vector<MissedRow> rows;
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    rows.push_back({&family.rows[i], family.predicted()[i], errors[i]});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const MissedRow& a, const MissedRow& b) { return std::abs(a.error) > std::abs(b.error); });
  rows.resize(std::min(count, rows.size()));
  return rows;
}

// Absolute errors of a family's rows by dimension and value.
using ByValue = std::map<Dimension, std::map<double, std::vector<double>>>;

ByValue by_value(const StackFamily& family, const std::vector<double>& errors) {
  ByValue values;
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    for (const auto& [dimension, value] : family.rows[i].dimensions) {
      values[dimension][value].push_back(std::abs(errors[i]));
    }
  }
  return values;
}

// Zero is no size but the absence of one, such as of a window.
std::optional<ValueGap> widest_gap(const ByValue& values) {
  std::optional<ValueGap> widest;
  double widest_ratio = kDoubling;
  for (const auto& [dimension, rows] : values) {
    for (auto at = rows.begin(); at != rows.end() && std::next(at) != rows.end(); ++at) {
      const double low = at->first, high = std::next(at)->first;
      if (!(low > 0) || !(high / low > widest_ratio)) continue;
      widest_ratio = high / low;
      widest = ValueGap{dimension, low, high};
    }
  }
  return widest;
}

std::optional<Weakness> weakest_value(const ByValue& values, std::size_t rows, double median_abs) {
  std::optional<Weakness> weakest;
  double worst = kWeak * median_abs;
  for (const auto& [dimension, by] : values) {
    for (const auto& [value, errors] : by) {
      if (errors.size() < kEnoughRows || 2 * errors.size() > rows) continue;
      const double median = quantile(errors, 0.5);
      if (!(median > worst)) continue;
      worst = median;
      weakest = Weakness{dimension, value, static_cast<int>(errors.size()), median};
    }
  }
  return weakest;
}

FamilyReport report_of(const StackFamily& family, std::size_t worst) {
  FamilyReport report;
  report.family = family.name;
  report.form = family.form;
  report.rows = static_cast<int>(family.rows.size());
  report.held_out = summary_of(errors_of(family.rows, family.left_out));
  report.in_sample = summary_of(errors_of(family.rows, family.fitted));
  if (!family.correction.empty()) {
    report.curve_median_abs = family.correction.curve_median_abs_error;
    report.curve_p95_abs = family.correction.curve_p95_abs_error;
  }
  const std::vector<double> errors = errors_of(family.rows, family.predicted());
  const ByValue values = by_value(family, errors);
  report.worst = worst_of(family, errors, worst);
  report.gap = widest_gap(values);
  report.weakest = weakest_value(values, family.rows.size(), summary_of(errors).median_abs);
  return report;
}

double p95_of(const FamilyReport& report) {
  return std::isnan(report.held_out.p95_abs) ? report.in_sample.p95_abs : report.held_out.p95_abs;
}

}  // namespace

std::vector<FamilyReport> report_of(const StackCalibration& calibration, std::size_t worst) {
  std::vector<FamilyReport> reports;
  for (const StackFamily& family : calibration.families) reports.push_back(report_of(family, worst));
  std::stable_sort(reports.begin(), reports.end(),
                   [](const FamilyReport& a, const FamilyReport& b) { return p95_of(a) > p95_of(b); });
  return reports;
}

}  // namespace moeline

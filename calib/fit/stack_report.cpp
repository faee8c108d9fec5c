#include "calib/fit/stack_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace moeline {
namespace {

constexpr std::size_t kFewRows = 3;
constexpr double kLeverage = 1.5;    // times the fitted error
constexpr double kSamePoint = 0.02;  // rows nearer than this are the same shape
constexpr double kShared = 0.5;      // of the worst error, in both neighbours

using Rows = std::vector<std::size_t>;

// In factors of e; infinite where the dimensions differ.
double distance(const Dimensions& a, const Dimensions& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const auto& [dimension, value] : a) {
    const auto other = b.find(dimension);
    if (other == b.end()) return std::numeric_limits<double>::infinity();
    sum += std::pow(std::log(std::max(value, 1.0) / std::max(other->second, 1.0)), 2);
  }
  return std::sqrt(sum);
}

// The nearest two, nearest first.
Rows neighbours(std::size_t row, const Rows& family, const std::vector<Observation>& observations) {
  std::vector<std::pair<double, std::size_t>> by_distance;
  for (const std::size_t other : family) {
    const double away = distance(observations[row].dimensions, observations[other].dimensions);
    if (away > kSamePoint && std::isfinite(away)) by_distance.emplace_back(away, other);
  }
  std::sort(by_distance.begin(), by_distance.end());
  Rows nearest;
  for (const auto& [away, other] : by_distance) {
    if (nearest.size() < 2) nearest.push_back(other);
  }
  return nearest;
}

// "m between 16384 and 32768": the dimensions in which two rows differ.
std::string between(const Observation& a, const Observation& b) {
  std::vector<std::string> parts;
  for (const auto& [dimension, value] : a.dimensions) {
    const double other = b.dimensions.at(dimension);
    if (other == value) continue;
    parts.push_back(fmt::format("{} between {} and {}", name_of(dimension), short_number(std::min(value, other)),
                                short_number(std::max(value, other))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

class Adviser {
 public:
  Adviser(const std::vector<Observation>& observations, const Predictions& fitted, const Predictions& left_out)
      : observations_(observations), fitted_(fitted), left_out_(left_out) {}

  [[nodiscard]] Advice advise(const std::string& family, const Rows& rows) const {
    Advice advice;
    advice.family = family;
    advice.worst = *std::max_element(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(error(a)) < std::abs(error(b));
    });
    advice.error = error(advice.worst);
    advice.fitted_error = error_of(fitted_[advice.worst], observations_[advice.worst]);
    const Rows nearest = neighbours(advice.worst, rows, observations_);
    advice.cause = cause(advice, nearest);
    advice.measure = sentence(advice, nearest);
    return advice;
  }

 private:
  [[nodiscard]] double error(std::size_t row) const {
    const bool has = !left_out_.empty() && !std::isnan(left_out_[row]);
    return error_of(has ? left_out_[row] : fitted_[row], observations_[row]);
  }

  [[nodiscard]] Cause cause(const Advice& advice, const Rows& nearest) const {
    if (std::abs(advice.error) > kLeverage * std::abs(advice.fitted_error)) return Cause::leverage;
    const bool shared = !nearest.empty() && std::all_of(nearest.begin(), nearest.end(), [&](std::size_t row) {
      return error(row) / advice.error > kShared;
    });
    return shared ? Cause::structure : Cause::noise;
  }

  [[nodiscard]] std::string sentence(const Advice& advice, const Rows& nearest) const {
    const Observation& worst = observations_[advice.worst];
    const std::string where = nearest.empty() ? "" : between(worst, observations_[nearest.front()]);
    switch (advice.cause) {
      case Cause::leverage:
        return where.empty() ? "more rows like it" : "more rows like it: " + where;
      case Cause::structure:
        return "its neighbours are off alike, the curve lacks something there: " + where;
      case Cause::noise:
        break;
    }
    return where.empty() ? "again" : "again, since its neighbours are met better; then " + where;
  }

  const std::vector<Observation>& observations_;
  const Predictions& fitted_;
  const Predictions& left_out_;
};

}  // namespace

std::vector<Advice> measure_next(const std::vector<Observation>& observations, const Predictions& fitted,
                                 const Predictions& left_out) {
  std::map<std::string, Rows> families;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (observations[i].noise == Noise::timed) families[observations[i].family].push_back(i);
  }
  const Adviser adviser(observations, fitted, left_out);
  std::vector<Advice> advice;
  for (const auto& [family, rows] : families) {
    if (rows.size() >= kFewRows) advice.push_back(adviser.advise(family, rows));
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return std::abs(a.error) > std::abs(b.error); });
  return advice;
}

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

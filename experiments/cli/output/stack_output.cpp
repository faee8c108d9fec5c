#include "experiments/cli/output/stack_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.hpp"

namespace moeline {
namespace {

std::string unsigned_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:.1f}", 100 * share); }
std::string signed_percent_of(double share) { return std::isnan(share) ? "" : fmt::format("{:+.1f}", 100 * share); }

// Errors of a family's rows: predicted / measured - 1.
std::vector<double> errors_of(const StackFamily& family, const std::vector<double>& predicted) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    errors.push_back(predicted[i] / family.rows[i].measured_us - 1);
  }
  return errors;
}

double quantile(std::vector<double> values, double share, bool absolute) {
  if (values.empty() || std::isnan(values.front())) return kUnknown;
  if (absolute) std::transform(values.begin(), values.end(), values.begin(), [](double e) { return std::abs(e); });
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace

std::string stack_text(const StackCalibration& calibration) {
  TextTable table("llrrrrrr");
  table.row({"family", "form", "rows", "median e", "median |e|", "95 %", "fitted |e|", "95 %"});
  for (const StackFamily& family : calibration.families) {
    const std::vector<double> left_out = errors_of(family, family.left_out);
    const std::vector<double> fitted = errors_of(family, family.fitted);
    table.row({family.name, family.form->name, fmt::format("{}", family.rows.size()),
               signed_percent_of(quantile(left_out, 0.5, false)), unsigned_percent_of(quantile(left_out, 0.5, true)),
               unsigned_percent_of(quantile(left_out, 0.95, true)), unsigned_percent_of(quantile(fitted, 0.5, true)),
               unsigned_percent_of(quantile(fitted, 0.95, true))});
  }
  std::string text = fmt::format("{} ({}): {}\n\n{}", calibration.kernels.name, calibration.kernels.date,
                                 calibration.kernels.source, table.text());
  text +=
      "\nErrors are predicted / measured - 1, in %: of rows whose whole slice the fit did not see, then of the fit.\n";
  for (const std::string& line : calibration.log) text += line + "\n";
  return text;
}

std::string stack_residuals_text(const StackCalibration& calibration) {
  constexpr std::size_t kWorst = 12;
  std::string text;
  for (const StackFamily& family : calibration.families) {
    const bool held_out = !std::isnan(family.left_out.front());
    const std::vector<double>& predicted = held_out ? family.left_out : family.fitted;
    const std::vector<double> errors = errors_of(family, predicted);
    std::vector<std::size_t> order(errors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(errors[a]) > std::abs(errors[b]); });
    text += fmt::format("\n{}: measure again\n", family.name);
    for (std::size_t i = 0; i < std::min(kWorst, order.size()); ++i) {
      const FormRow& row = family.rows[order[i]];
      text += fmt::format("  {:+6.0f} %  {:>10.1f} us measured {:>10.1f} predicted  {}\n", 100 * errors[order[i]],
                          row.measured_us, predicted[order[i]], row.where);
    }
  }
  return text;
}

}  // namespace moeline

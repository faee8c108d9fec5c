#include "experiments/cli/output/stack_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.hpp"

namespace moeline {
namespace {

// Errors of a family's rows: predicted / measured - 1.
std::vector<double> errors_of(const StackFamily& family, const std::vector<double>& predicted) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(predicted[i] / family.rows[i].measured_us - 1);
  }
  return errors;
}

// Median and 95th percentile of |error|; blank where there is none.
std::pair<std::string, std::string> absolute_of(const StackFamily& family, const std::vector<double>& predicted) {
  if (predicted.empty()) return {};
  const AbsoluteErrors errors = absolute_errors(family.rows, predicted);
  return {fmt::format("{:.1f}", 100 * errors.median), fmt::format("{:.1f}", 100 * errors.p95)};
}

}  // namespace

std::string stack_text(const StackCalibration& calibration) {
  TextTable table("llrrrrrrrr");
  table.row({"family", "form", "rows", "median e", "median |e|", "95 %", "curve |e|", "95 %", "fitted |e|", "95 %"});
  for (const StackFamily& family : calibration.families) {
    const std::vector<double> left_out = errors_of(family, family.left_out);
    const auto [median, p95] = absolute_of(family, family.left_out);
    const auto [fitted, fitted_p95] = absolute_of(family, family.fitted);
    const Correction& c = family.correction;
    const auto alone = [&](double error) { return c.empty() ? "" : fmt::format("{:.1f}", 100 * error); };
    table.row({family.name, family.form->name, fmt::format("{}", family.rows.size()),
               left_out.empty() ? "" : fmt::format("{:+.1f}", 100 * quantile(left_out, 0.5)), median, p95,
               alone(c.curve_median_abs_error), alone(c.curve_p95_abs_error), fitted, fitted_p95});
  }
  std::string text = fmt::format("{} ({}): {}\n\n{}", calibration.kernels.name, calibration.kernels.date,
                                 calibration.kernels.source, table.text());
  text +=
      "\nErrors are predicted / measured - 1, in %: of rows whose whole slice the fit did not see; of their curve "
      "alone,\n"
      "where a correction pays; of the fit.\n";
  for (const std::string& line : calibration.log) text += line + "\n";
  return text;
}

std::string stack_residuals_text(const StackCalibration& calibration) {
  constexpr std::size_t kWorst = 12;
  std::string text;
  for (const StackFamily& family : calibration.families) {
    const bool held_out = !family.left_out.empty();
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

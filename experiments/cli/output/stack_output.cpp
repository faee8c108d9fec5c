#include "experiments/cli/output/stack_output.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text_table.hpp"
#include "experiments/cli/output/stack_parts.hpp"

namespace moeline {
namespace {

constexpr const char* kErrors = "Errors are predicted / measured - 1, in %.";

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

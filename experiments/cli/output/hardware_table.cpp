#include "experiments/cli/output/hardware_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.hpp"
#include "experiments/cli/output/family_coverage.hpp"

namespace moeline {
namespace {

std::string fact_table(const HardwareProfile& profile) {
  TextTable table("lrll");
  table.row({"fact", "value", "unit", "source"});
  for (const MachineFact& fact : list_facts(profile.facts)) {
    table.row({fact.key, fmt::format("{}", fact.value), fact.unit, profile.sources.at(fact.key)});
  }
  return table.text();
}

// "nvlink_GBps 160 (here 450)", or "" where a set was fitted on this very machine.
std::string difference_text(const MachineFacts& fitted_on, const MachineFacts& here) {
  std::vector<std::string> differing;
  for (const FactDifference& fact : differences(fitted_on, here)) {
    differing.push_back(fmt::format("{} {} (here {})", fact.key, fact.fitted_on, fact.here));
  }
  return fmt::format("{}", fmt::join(differing, ", "));
}

std::string machine_line(const std::string& differing) {
  return differing.empty() ? "fitted on this machine" : "fitted on a machine with " + differing;
}

std::string range_text(const MeasuredRange& range) {
  std::vector<std::string> sides;
  for (const auto& [dimension, interval] : range) {
    const std::string low = short_number(interval.low), high = short_number(interval.high);
    sides.push_back(name_of(dimension) + " " + (low == high ? low : low + " to " + high));
  }
  return fmt::format("{}", fmt::join(sides, ", "));
}

// Median and 95th percentile without the correction; "" where there is none.
std::string curve_alone(const Correction& correction) {
  if (correction.empty()) return "";
  return fmt::format("{}, {}", percent(correction.curve_median_abs_error), percent(correction.curve_p95_abs_error));
}

// `complete`: with what the set borrows. Its own families first.
std::string family_table(const KernelSet& complete, const MachineFacts& facts) {
  TextTable table("llrlrrrrrrl");
  table.row({"family", "from", "rows", "errors", "median e", "median |e|", "95 %", "curve alone", "worst e", "mean e",
             "measured"});
  for (const bool own : {true, false}) {
    for (const auto& [family, fit] : complete.fits) {
      if ((fit.kernel_set == complete.name) != own) continue;
      const std::string other = other_constants(family, complete, facts);
      const std::string from = own ? "own" : fit.kernel_set;
      table.row({family, other.empty() ? from : from + ", constants of " + other, fmt::format("{}", fit.kernels),
                 fit.held_out ? "held-out" : "in-sample",
                 std::isnan(fit.median_error) ? "" : signed_percent(fit.median_error), percent(fit.median_abs_error),
                 percent(fit.p95_abs_error), curve_alone(fit.correction), signed_percent(fit.worst_error),
                 signed_percent(fit.mean_error), range_text(fit.range)});
    }
  }
  return table.text("  ");
}

// Families that have no row of their own.
std::string without_fit_text(const KernelSet& complete, const MachineFacts& facts) {
  const FamiliesWithoutFit families = families_without_fit(complete, facts);
  const auto line = [](const char* what, const std::vector<std::string>& names) {
    return fmt::format("  {}: {}\n", what, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  };
  return (families.by_casts.empty() ? "" : line("by the curve of casts", families.by_casts)) +
         line("by gemm_fp8's curve at the format's own peak", families.by_gemm_fp8) +
         line("by the facts", families.by_facts) + line("known to nobody, priced by roofline", families.by_roofline) +
         (families.refused.empty() ? ""
                                   : line("not on this machine, whose tensor cores lack the format", families.refused));
}

// Lines of at most 120 characters, broken after `separator` and indented by two.
std::string folded(const std::string& text, char separator) {
  constexpr std::size_t kWidth = 118;
  std::string lines, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size() - 1) + 1;
    const std::string part = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + part.size() > kWidth) {
      lines += "  " + line + "\n";
      line = part.substr(part.find_first_not_of(' '));
    } else {
      line += part;
    }
    begin = end;
  }
  return lines + "  " + line + "\n";
}

std::string kernel_set_text(const KernelSet& set, const HardwareProfile& profile) {
  const KernelSet complete = profile.kernels(set.name);
  const std::string published =
      set.published_errors.empty() ? "" : "  published throughput by it: " + published_text(set) + "\n";
  return fmt::format("\nkernel set {} ({}){}, timed at {} clock, {}\n{}{}{}\n{}\n{}", set.name, set.date,
                     set.by_name_only ? ", by its name only" : "", name_of(set.clock),
                     machine_line(difference_text(set.fitted_on, profile.facts)), published, folded(set.source, ';'),
                     folded(count_constants(set), ','), family_table(complete, profile.facts),
                     without_fit_text(complete, profile.facts));
}

}  // namespace

std::string published_text(const KernelSet& set) {
  std::vector<std::string> errors;
  for (const auto& [phase, error] : set.published_errors) {
    errors.push_back(fmt::format("{} {}", phase, signed_percent(error)));
  }
  return fmt::format("{}", fmt::join(errors, ", "));
}

std::string count_constants(const KernelSet& set) {
  std::vector<std::string> groups;
  for (const auto& [group, known] : known_by_group(set.constants)) groups.push_back(fmt::format("{} {}", group, known));
  const auto forms =
      std::count_if(set.fits.begin(), set.fits.end(), [](const auto& each) { return each.second.form != nullptr; });
  if (set.known_constants() == 0 && forms > 0) return fmt::format("{} families, each with a form of its own", forms);
  return fmt::format("{} constants: {}", set.known_constants(), fmt::join(groups, ", "));
}

std::string hardware_table(const HardwareProfile& profile) {
  std::string text = fmt::format("{}: per GPU; links per direction\n\n{}", profile.name, fact_table(profile));
  for (const KernelSet& set : sets_to_choose(profile)) text += kernel_set_text(set, profile);
  if (!profile.carried_over.empty()) text += "\n";
  for (const KernelSet& set : profile.carried_over) {
    text += fmt::format("carried over from {}, {}\n", set.origins.front(),
                        machine_line(difference_text(set.fitted_on, profile.facts)));
  }
  if (profile.kernel_sets.empty() && profile.carried_over.empty()) return text + "\nno kernel set\n";
  return text +
         "\nErrors are predicted / measured - 1, held-out: by fits that did not see those rows. Constants that a set "
         "lacks\nare borrowed from the set under `from`, of another machine (NAME: SET) or of this one; `constants of` "
         "says\nwhere rows, errors and range are another set's than the constants that price the family. Another "
         "machine's "
         "or\nset's make every price extrapolated. `curve alone`: of a family with a correction, median and 95th "
         "percentile of |e|\nwithout it.\n`measured` is the range of each dimension: m, n, k of a GEMM (m of "
         "each group where masked), "
         "rows: queries that\nshare keys, bytes: of memory traffic, or through the SMs of a transfer.\n";
}

}  // namespace moeline

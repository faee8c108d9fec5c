#include "experiments/cli/output/hardware_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/file.hpp"
#include "base/text_table.hpp"

namespace moeline {
namespace {

std::string fact_table(const HardwareProfile& profile) {
  TextTable table("lrll");
  table.row({"fact", "value", "unit", "source"});
  for (const MachineFact& fact : list_facts(profile.facts)) {
    table.row({fact.key, fact.text, fact.unit, profile.sources.at(fact.key)});
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

// What the keys of an object mean, by the schema of a machine: facts, constants and dimensions are described there.
Keys keys_of_profiles(const std::vector<std::string>& path) {
  const std::filesystem::path file = home() / "experiments/schema/profile.json";
  const YamlNode schema = parse_yaml(file.string(), read_text(file));
  const YamlNode* node = &schema;
  for (const std::string& key : path) node = node->find(key);
  Keys keys;
  for (const YamlNode& key : node->find("properties")->items) {
    const std::string about = key.find("description")->word;
    keys.emplace_back(key.key, about.substr(0, about.find("; by default")));
  }
  return keys;
}

Keys dimension_keys() { return keys_of_profiles({"definitions", "range"}); }

using Named = std::vector<std::pair<std::string, double>>;

struct ListedFact {
  MachineFact fact;
  std::string source;
};

struct ListedSet {
  KernelSet set, complete;  // alone, and with what it borrows
  MachineFacts here;
};

struct ListedFamily {
  std::string name;
  FamilyFit fit;
  std::string other;  // set of its constants, where it is not its own
};

std::vector<ListedSet> listed_sets(const HardwareProfile& profile, const std::vector<KernelSet>& sets) {
  std::vector<ListedSet> listed;
  for (const KernelSet& set : sets) listed.push_back({set, profile.kernels(set.name), profile.facts});
  return listed;
}

std::vector<ListedFamily> listed_families(const ListedSet& set) {
  std::vector<ListedFamily> families;
  for (const auto& [name, fit] : set.complete.fits) {
    families.push_back({name, fit, other_constants(name, set.complete, set.here)});
  }
  return families;
}

Named known_constants(const ListedSet& listed) {
  Named constants;
  for (std::size_t i = 0; i < kConstants; ++i) {
    const double value = listed.set.constants[i];
    if (!std::isnan(value)) constants.emplace_back(constant_name(i), value);
  }
  return constants;
}

std::optional<Named> form_constants(const FamilyFit& fit) {
  if (fit.form == nullptr) return std::nullopt;
  Named constants;
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    constants.emplace_back(fit.form->parts[i].name, fit.constants[i]);
  }
  return constants;
}

std::vector<std::pair<std::string, int>> knots_by_name(const Correction& correction) {
  std::vector<std::pair<std::string, int>> knots;
  for (const GridAxis& axis : correction.axes) {
    knots.emplace_back(name_of(axis.dimension), static_cast<int>(axis.knots.size()));
  }
  return knots;
}

std::vector<std::pair<std::string, Bounds>> ranges_by_name(const MeasuredRange& range) {
  std::vector<std::pair<std::string, Bounds>> named;
  for (const auto& [dimension, bounds] : range) named.emplace_back(name_of(dimension), bounds);
  return named;
}

// With as many digits as it has.
As exact_as(double least = kAny) { return {.decimals = kAllDigits, .least = least}; }

Fields<HardwareProfile> machine_facts() {
  const auto of_fact = Fields<ListedFact>()
                           .add(
                               "value", "value", [](auto& f) { return f.fact.value; }, exact_as())
                           .add("text", "the value, or the word whose place it is", [](auto& f) { return f.fact.text; })
                           .add("unit", "unit; empty: a number", [](auto& f) { return f.fact.unit; })
                           .add("source", "who says so", &ListedFact::source);
  Fields<HardwareProfile> fields;
  std::map<std::string, std::string> about;
  for (const auto& [key, says] : keys_of_profiles({"properties", "facts"})) about[key] = says;
  const std::vector<std::string> names = fact_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto listed = [=, key = names[i]](const HardwareProfile& profile) {
      return ListedFact{list_facts(profile.facts)[i], profile.sources.at(key)};
    };
    fields.object(names[i], about[names[i]], listed, of_fact);
  }
  return fields;
}

Fields<KernelSet> fitted_on_other(const MachineFacts& here) {
  const auto differing = [=](const KernelSet& set) {
    Named facts;
    for (const FactDifference& fact : differences(set.fitted_on, here)) facts.emplace_back(fact.key, fact.fitted_on);
    return facts;
  };
  return Fields<KernelSet>().values("fitted_on_other", "facts in which the machine differs that it was fitted on",
                                    differing, exact_as());
}

Fields<Correction> correction_fields() {
  return Fields<Correction>()
      .values("knots", "knots of each dimension", knots_by_name, {}, dimension_keys())
      .add("curve_median_abs_error", "of the curve alone", &Correction::curve_median_abs_error, exact_as(0))
      .add("curve_p95_abs_error", "of the curve alone", &Correction::curve_p95_abs_error, exact_as(0));
}

Fields<FamilyFit> fit_fields() {
  const auto bounds =
      Fields<Bounds>().add("low", "least", &Bounds::low, exact_as()).add("high", "most", &Bounds::high, exact_as());
  return Fields<FamilyFit>()
      .add("rows", "rows that were measured", &FamilyFit::kernels)
      .add("held_out", "errors are of rows whose slice the fit did not see", &FamilyFit::held_out)
      .add("form", "cost curve of a serving stack's kernel",
           [](auto& f) { return only_if(f.form != nullptr, f.form != nullptr ? f.form->name : ""); })
      .values("form_constants", "of the form", form_constants, exact_as())
      .add(
          "median_error", "median of predicted / measured - 1",
          [](auto& f) { return only_if(f.form != nullptr, f.median_error); }, exact_as())
      .add("median_abs_error", "median of its amount", &FamilyFit::median_abs_error, exact_as(0))
      .add("p95_abs_error", "95 % quantile", &FamilyFit::p95_abs_error, exact_as(0))
      .add("worst_error", "largest by its amount", &FamilyFit::worst_error, exact_as())
      .add("mean_error", "mean", &FamilyFit::mean_error, exact_as())
      .object(
          "correction", "gains beside the curve",
          [](auto& f) { return f.correction.empty() ? nullptr : &f.correction; }, correction_fields())
      .map(
          "measured", "what was measured of each dimension", [](auto& f) { return ranges_by_name(f.range); }, bounds,
          dimension_keys());
}

Fields<FamiliesWithoutFit> without_fit_fields() {
  return Fields<FamiliesWithoutFit>()
      .add("by_gemm_fp8", "as FP8 GEMMs", &FamiliesWithoutFit::by_gemm_fp8)
      .add("by_casts", "as casts", &FamiliesWithoutFit::by_casts)
      .add("by_facts", "by facts of the machine", &FamiliesWithoutFit::by_facts)
      .add("by_roofline", "by the machine's peaks", &FamiliesWithoutFit::by_roofline)
      .add("refused", "not at all", &FamiliesWithoutFit::refused);
}

Fields<ListedSet> set_fields(const MachineFacts& here) {
  const auto family =
      Fields<ListedFamily>()
          .add("family", "family of kernels", &ListedFamily::name)
          .add("kernel_set", "set whose measurements they are", [](auto& f) { return f.fit.kernel_set; })
          .add("constants_of", "set whose constants price it",
               [](auto& f) { return f.other.empty() ? f.fit.kernel_set : f.other; })
          .all(&ListedFamily::fit, fit_fields());
  return Fields<ListedSet>()
      .add("name", "name", [](auto& s) { return s.set.name; })
      .add("date", "when it was measured or published", [](auto& s) { return s.set.date; })
      .add("source", "whose measurements", [](auto& s) { return s.set.source; })
      .add("by_name_only", "it is neither a default nor a lender", [](auto& s) { return s.set.by_name_only; })
      .add("stack", "whose habits come with the kernels", [](auto& s) { return name_of(s.set.stack); },
           {.words = words_to(Stack::vllm)})
      .add("clock", "at which clock of the SMs it was timed", [](auto& s) { return name_of(s.set.clock); },
           {.words = words_to(Clock::unknown)})
      .all(&ListedSet::set, fitted_on_other(here))
      .values("published_errors",
              "throughput of whole runs published of the machine: predicted with this set / published - 1",
              [](auto& s) { return s.set.published_errors.empty() ? nullptr : &s.set.published_errors; }, exact_as(-1),
              {{"decode", "of decode"}, {"prefill", "of prefill"}})
      .values("constants", "that the set has", known_constants, exact_as(),
              keys_of_profiles({"definitions", "kernel_set", "properties", "constants"}))
      .list("families", "with what it borrows", listed_families, family)
      .object(
          "families_without_measurements", "how others are priced",
          [](auto& s) { return families_without_fit(s.complete, s.here); }, without_fit_fields());
}

}  // namespace

Fields<HardwareProfile> machine_fields(const MachineFacts& here) {
  const auto lender = Fields<KernelSet>()
                          .add("name", "name", &KernelSet::name)
                          .add("from", "machine and set", [](auto& s) { return s.origins.front(); })
                          .all(std::identity(), fitted_on_other(here));
  return output_fields<HardwareProfile>()
      .add("name", "name", &HardwareProfile::name)
      .object("facts", "facts of one GPU, links per direction", std::identity(), machine_facts())
      .list(
          "kernel_sets", "sets to choose from", [](auto& p) { return listed_sets(p, sets_to_choose(p)); },
          set_fields(here))
      .list("carried_over", "sets of other machines", &HardwareProfile::carried_over, lender);
}

Fields<std::vector<HardwareProfile>> machines_fields() {
  const auto machine = Fields<HardwareProfile>()
                           .add("name", "name", &HardwareProfile::name)
                           .add("kernel_sets", "own ones and those carried over", &HardwareProfile::set_names)
                           .object("facts", "facts of one GPU, links per direction", std::identity(), machine_facts());
  return output_fields<std::vector<HardwareProfile>>().list("hardware", "machines", std::identity(), machine);
}

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

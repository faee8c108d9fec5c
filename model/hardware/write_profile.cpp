// Profiles written as the YAML that they are read from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "hardware/profile.hpp"
#include "hardware/profile_words.hpp"

namespace moeline {
namespace {

using namespace profile_words;

bool is_default(const FactField& field, const MachineFacts& facts) {
  return field.assumed != nullptr && facts.*field.value == MachineFacts{}.*field.value;
}

std::string digits(double value, int count) { return fmt::format("{:.{}g}", value, count); }

// "range: {m: [64, 32768]}, "
std::string range_yaml(const MeasuredRange& range) {
  return range.empty() ? "" : fmt::format("range: {}, ", to_yaml(range));
}

// "form: flash_decode, constants: {start_us: 8.9, ...}, "
std::string form_yaml(const FamilyFit& fit) {
  if (fit.form == nullptr) return "";
  std::vector<std::string> constants;
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    constants.push_back(fmt::format("{}: {}", fit.form->parts[i].name, digits(fit.constants[i], 5)));
  }
  return fmt::format("form: {}, constants: {{{}}}, ", fit.form->name, fmt::join(constants, ", "));
}

std::string timed_by_yaml(const FamilyFit& fit) {
  if (fit.host_timed) return fmt::format(", timed_by: {}", kHostClock);
  return fit.graph_timed ? fmt::format(", timed_by: {}", kGraphClock) : "";
}

// "    published_errors: {decode: -0.08}\n", or "".
std::string published_yaml(const KernelSet& set) {
  if (set.published_errors.empty()) return "";
  std::vector<std::string> errors;
  for (const auto& [phase, error] : set.published_errors)
    errors.push_back(fmt::format("{}: {}", phase, digits(error, 3)));
  return fmt::format("    published_errors: {{{}}}  # of throughput, tests/published/inference_throughput*.yaml\n",
                     fmt::join(errors, ", "));
}

std::string kernel_set_yaml(const KernelSet& set) {
  std::vector<std::string> machine;
  for (const FactField& field : fact_fields()) {
    if (is_default(field, set.fitted_on) || !field.prices) continue;
    machine.push_back(fmt::format("{}: {}", field.key, field.text(set.fitted_on.*field.value)));
  }
  std::string text = fmt::format(
      "  {}:\n    date: {}\n    source: \"{}\"\n{}{}    tiles: {}  # of FP8 GEMMs\n    clock: {}\n"
      "    fitted_on: {{{}}}\n",
      set.name, set.date, set.source,
      set.stack == Stack::none ? "" : fmt::format("    stack: {}\n", name_of(set.stack)),
      set.by_name_only ? "    by_name_only: true\n" : "", set.tiles == TileSet::narrow ? kNarrow : kWide,
      name_of(set.clock), fmt::join(machine, ", "));
  text += published_yaml(set);
  if (set.known_constants() > 0) text += fmt::format("    constants:  # {} in all\n", set.known_constants());
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (!std::isnan(set.constants[i]))
      text += fmt::format("      {}: {}\n", constant_name(i), digits(set.constants[i], 5));
  }
  text += "    fits:  # errors of predicted / measured - 1\n";
  for (const auto& [family, fit] : set.fits) {
    text += fmt::format("      {}: {{{}kernels: {}, {}", family, form_yaml(fit), fit.kernels, range_yaml(fit.range));
    text += fmt::format(
        "errors: {}, {}median_abs_error: {}, p95_abs_error: {}, worst_error: {}, mean_error: {}{}{}{}{}}}\n",
        fit.held_out ? kHeldOut : kInSample,
        std::isnan(fit.median_error) ? "" : fmt::format("median_error: {}, ", digits(fit.median_error, 3)),
        digits(fit.median_abs_error, 3), digits(fit.p95_abs_error, 3), digits(fit.worst_error, 3),
        digits(fit.mean_error, 3), std::isnan(fit.jitter) ? "" : ", jitter: " + digits(fit.jitter, 3),
        timed_by_yaml(fit), fit.clock == set.clock ? "" : ", clock: " + name_of(fit.clock),
        fit.correction.empty() ? "" : ", correction: " + to_yaml(fit.correction));
  }
  return text;
}

}  // namespace

std::string to_yaml(const HardwareProfile& profile) {
  std::string text = fmt::format("name: {}\n\n# Per GPU; links per direction.\nfacts:\n", profile.name);
  for (const FactField& field : fact_fields()) {
    const std::string& fact_source = profile.sources.at(field.key);
    if (field.assumed != nullptr && fact_source == field.assumed) continue;
    text += fmt::format("  {}: {{value: {}, source: \"{}\"}}\n", field.key, field.text(profile.facts.*field.value),
                        fact_source);
  }
  if (!profile.carried_over_from.empty()) {
    text += fmt::format("\n# Whose kernel sets fill the gaps of those below.\ncarried_over_from: {}\n",
                        profile.carried_over_from);
  }
  if (profile.kernel_sets.empty()) return text;
  text +=
      fmt::format("{}calibrate`; what the constants mean: model/curves/constants.hpp\nkernel_sets:\n", kProfileMark);
  for (const KernelSet& set : profile.kernel_sets) text += kernel_set_yaml(set);
  return text;
}

}  // namespace moeline

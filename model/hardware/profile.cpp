#include "hardware/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

struct FactField {
  const char* key;
  double MachineFacts::*value;
  double low, high;
};

constexpr std::array<FactField, 9> kFacts = {{
    {"sms", &MachineFacts::sms, 1, 4096},
    {"fp8_tflops", &MachineFacts::fp8_tflops, 1e-3, 1e6},
    {"bf16_tflops", &MachineFacts::bf16_tflops, 1e-3, 1e6},
    {"hbm_GBps", &MachineFacts::hbm_GBps, 1e-3, 1e7},
    {"nvlink_GBps", &MachineFacts::nvlink_GBps, 1e-3, 1e7},
    {"nic_GBps", &MachineFacts::nic_GBps, 1e-3, 1e7},
    {"gpus_per_node", &MachineFacts::gpus_per_node, 1, 1024},
    {"memory_gib", &MachineFacts::memory_gib, 1e-3, 1e5},
    {"nic_latency_us", &MachineFacts::nic_latency_us, 0, 1e6},
}};

bool is_count(const FactField& field) {
  return field.value == &MachineFacts::sms || field.value == &MachineFacts::gpus_per_node;
}

std::vector<std::string> fact_names() {
  std::vector<std::string> names;
  for (const FactField& field : kFacts) names.emplace_back(field.key);
  return names;
}

double read_fact(const Spec& spec, const std::string& key, const FactField& field) {
  if (is_count(field)) return spec.integer(key, static_cast<int>(field.low), static_cast<int>(field.high));
  return spec.number(key, field.low, field.high);
}

void read_facts(const Spec& spec, HardwareProfile& profile) {
  spec.expect(fact_names());
  for (const FactField& field : kFacts) {
    const Spec fact = spec.map(field.key);
    fact.expect({"value", "source"});
    profile.facts.*field.value = read_fact(fact, "value", field);
    profile.sources[field.key] = fact.text("source");
  }
}

void override_facts(const std::vector<std::string>& overrides, HardwareProfile& profile) {
  Spec root = Spec::parse("--set", "{hardware: {}}");
  for (const std::string& override : overrides) root.set("hardware." + override);
  const Spec spec = root.map("hardware");
  spec.expect(fact_names());
  for (const FactField& field : kFacts) {
    if (!spec.has(field.key)) continue;
    profile.facts.*field.value = read_fact(spec, field.key, field);
    profile.sources[field.key] = "--set";
  }
}

FamilyFit read_fit(const Spec& spec) {
  spec.expect({"kernels", "smallest", "largest", "fewest_sms", "most_sms", "fewest_ranks", "most_ranks",
               "median_abs_error", "worst_error", "mean_error"});
  FamilyFit fit;
  fit.kernels = spec.integer("kernels", 1, 1 << 30);
  fit.smallest = spec.number("smallest", 0, 1e30);
  fit.largest = spec.number("largest", fit.smallest, 1e30);
  fit.fewest_sms = spec.integer_or("fewest_sms", 0, 4096, 0);
  fit.most_sms = spec.integer_or("most_sms", fit.fewest_sms, 4096, 0);
  fit.fewest_ranks = spec.integer_or("fewest_ranks", 0, 1 << 20, 0);
  fit.most_ranks = spec.integer_or("most_ranks", fit.fewest_ranks, 1 << 20, 0);
  fit.median_abs_error = spec.number("median_abs_error", 0, 1e6);
  fit.worst_error = spec.number("worst_error", -1, 1e6);
  fit.mean_error = spec.number("mean_error", -1, 1e6);
  return fit;
}

KernelSet read_kernel_set(const std::string& name, const Spec& spec) {
  spec.expect({"date", "source", "fitted_on", "constants", "fits"});
  KernelSet set;
  set.name = name;
  set.date = spec.text("date");
  set.source = spec.text("source");
  const Spec machine = spec.map("fitted_on");
  machine.expect(fact_names());
  for (const FactField& field : kFacts) set.fitted_on.*field.value = read_fact(machine, field.key, field);
  const Spec constants = spec.map("constants");
  constants.expect({std::begin(kConstantNames), std::end(kConstantNames)});
  for (std::size_t i = 0; i < kConstants; ++i) {
    set.constants[i] = constants.number(std::string(kConstantNames[i]), 0, 1e9);
  }
  const Spec fits = spec.map("fits");
  for (const std::string& family : fits.keys()) set.fits[family] = read_fit(fits.map(family));
  return set;
}

std::string digits(double value, int count) { return fmt::format("{:.{}g}", value, count); }

std::string kernel_set_yaml(const KernelSet& set) {
  std::vector<std::string> machine;
  for (const FactField& field : kFacts) machine.push_back(fmt::format("{}: {}", field.key, set.fitted_on.*field.value));
  std::string text =
      fmt::format("  {}:\n    date: {}\n    source: {}\n    fitted_on: {{{}}}\n    constants:  # {} in all\n", set.name,
                  set.date, set.source, fmt::join(machine, ", "), kConstants);
  for (std::size_t i = 0; i < kConstants; ++i) {
    text += fmt::format("      {}: {}\n", kConstantNames[i], digits(set.constants[i], 5));
  }
  text += "    fits:  # on the kernels they were fitted to; sizes in FLOPs, bytes, or items\n";
  for (const auto& [family, fit] : set.fits) {
    text += fmt::format("      {}: {{kernels: {}, smallest: {}, largest: {}", family, fit.kernels,
                        digits(fit.smallest, 8), digits(fit.largest, 8));
    if (fit.most_sms > 0) text += fmt::format(", fewest_sms: {}, most_sms: {}", fit.fewest_sms, fit.most_sms);
    if (fit.most_ranks > 0) {
      text += fmt::format(", fewest_ranks: {}, most_ranks: {}", fit.fewest_ranks, fit.most_ranks);
    }
    text += fmt::format(", median_abs_error: {}, worst_error: {}, mean_error: {}}}\n", digits(fit.median_abs_error, 3),
                        digits(fit.worst_error, 3), digits(fit.mean_error, 3));
  }
  return text;
}

}  // namespace

const KernelSet& HardwareProfile::kernels(const std::string& set) const {
  std::vector<std::string> names;
  for (const KernelSet& candidate : kernel_sets) {
    if (candidate.name == set) return candidate;
    names.push_back(candidate.name);
  }
  if (kernel_sets.empty()) throw SpecError("hardware '" + name + "' has no kernel set; see `moeline calibrate`");
  if (set.empty()) return kernel_sets.back();
  throw UnknownName(unknown_name("kernel set of " + name, set, names));
}

HardwareProfile load_profile(const std::string& reference, const std::vector<std::string>& overrides,
                             const std::filesystem::path& written_in) {
  const auto path = find_named("hardware", reference, "hwprofiles", written_in);
  const Spec spec = Spec::load(path);
  spec.expect({"name", "facts", "kernel_sets"});
  HardwareProfile profile;
  profile.name = spec.text("name");
  read_facts(spec.map("facts"), profile);
  const Spec sets = spec.map_or_empty("kernel_sets");
  for (const std::string& name : sets.keys()) profile.kernel_sets.push_back(read_kernel_set(name, sets.map(name)));
  std::stable_sort(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                   [](const KernelSet& a, const KernelSet& b) { return a.date < b.date; });
  override_facts(overrides, profile);
  return profile;
}

std::string to_yaml(const HardwareProfile& profile) {
  std::string text = fmt::format("name: {}\n\n# Per GPU; links per direction.\nfacts:\n", profile.name);
  for (const FactField& field : kFacts) {
    text += fmt::format("  {}: {{value: {}, source: \"{}\"}}\n", field.key, profile.facts.*field.value,
                        profile.sources.at(field.key));
  }
  text += "\n# Written by `moeline calibrate`; what the constants mean: model/hardware/constants.hpp\nkernel_sets:\n";
  for (const KernelSet& set : profile.kernel_sets) text += kernel_set_yaml(set);
  return text;
}

}  // namespace moeline

#include "hardware/profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/file.hpp"
#include "base/memo.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

struct FactField {
  const char* key;
  double MachineFacts::*value;
  double low, high;
  const char* unit;
  const char* assumed = nullptr;  // source of the default, which holds where a profile says nothing; null: it must
};

constexpr const char* kInSample = "in-sample";
constexpr const char* kHeldOut = "held-out";
constexpr const char* kNarrow = "narrow";
constexpr const char* kWide = "wide";

constexpr std::array<FactField, 17> kFacts = {{
    {"sms", &MachineFacts::sms, 1, 4096, ""},
    {"sm_clock_mhz", &MachineFacts::sm_clock_mhz, 1, 1e5, "MHz"},
    {"fp8_tflops", &MachineFacts::fp8_tflops, 0, 1e6, "TFLOP/s"},
    {"bf16_tflops", &MachineFacts::bf16_tflops, 1e-3, 1e6, "TFLOP/s"},
    {"hbm_GBps", &MachineFacts::hbm_GBps, 1e-3, 1e7, "GB/s"},
    {"nvlink_GBps", &MachineFacts::nvlink_GBps, 1e-3, 1e7, "GB/s"},
    {"nic_GBps", &MachineFacts::nic_GBps, 1e-3, 1e7, "GB/s"},
    {"gpus_per_node", &MachineFacts::gpus_per_node, 1, 1024, ""},
    {"memory_gib", &MachineFacts::memory_gib, 1e-3, 1e5, "GiB"},
    {"nic_latency_us", &MachineFacts::nic_latency_us, 0, 1e6, "us"},
    {"nics_per_gpu", &MachineFacts::nics_per_gpu, 1, 64, "", "assumed: one NIC per GPU"},
    {"leaf_nodes", &MachineFacts::leaf_nodes, 0, 1e6, "", "assumed: all nodes under one leaf"},
    {"oversubscription", &MachineFacts::oversubscription, 1, 1e3, "", "assumed: uplinks as wide as the NICs"},
    {"rail_optimized", &MachineFacts::rail_optimized, 0, 1, "", "assumed: a leaf takes whole nodes"},
    {"leaf_latency_us", &MachineFacts::leaf_latency_us, 0, 1e6, "us",
     "InfiniBand, 64 bytes, same leaf (arXiv 2505.09343, table 5)"},
    {"slowest_nic", &MachineFacts::slowest_nic, 1e-3, 1, "", "assumed: all NICs alike"},
    {"slowest_nvlink", &MachineFacts::slowest_nvlink, 1e-3, 1, "", "assumed: all NVLinks alike"},
}};

bool is_count(const FactField& field) {
  return field.value == &MachineFacts::sms || field.value == &MachineFacts::gpus_per_node ||
         field.value == &MachineFacts::nics_per_gpu || field.value == &MachineFacts::leaf_nodes ||
         field.value == &MachineFacts::rail_optimized;
}

bool is_default(const FactField& field, const MachineFacts& facts) {
  return field.assumed != nullptr && facts.*field.value == MachineFacts{}.*field.value;
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
    if (field.assumed != nullptr && !spec.has(field.key)) {
      profile.sources[field.key] = field.assumed;
      continue;
    }
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

MeasuredRange read_range(const Spec& spec) {
  spec.expect(dimension_names());
  MeasuredRange range;
  for (std::size_t i = 0; i < dimension_names().size(); ++i) {
    const std::string& name = dimension_names()[i];
    if (!spec.has(name)) continue;
    const std::vector<double> ends = spec.numbers(name, 0, 1e30);
    if (ends.size() != 2) throw spec.error(name, "must be [LEAST, MOST]");
    if (ends[0] > ends[1]) {
      throw spec.error(name, fmt::format("must be [LEAST, MOST]: {} is above {}", ends[0], ends[1]));
    }
    range[static_cast<Dimension>(i)] = {ends[0], ends[1]};
  }
  return range;
}

FamilyFit read_fit(const Spec& spec) {
  spec.expect(
      {"kernels", "range", "errors", "median_abs_error", "p95_abs_error", "worst_error", "mean_error", "jitter"});
  FamilyFit fit;
  fit.kernels = spec.integer("kernels", 1, 1 << 30);
  fit.range = read_range(spec.map_or_empty("range"));
  fit.held_out = spec.choice("errors", {kInSample, kHeldOut}) == kHeldOut;
  fit.median_abs_error = spec.number("median_abs_error", 0, 1e6);
  fit.p95_abs_error = spec.number("p95_abs_error", 0, 1e6);
  fit.worst_error = spec.number("worst_error", -1, 1e6);
  fit.mean_error = spec.number("mean_error", -1, 1e6);
  if (spec.has("jitter")) fit.jitter = spec.number("jitter", 0, 1);
  return fit;
}

// A set may leave out whole groups of constants, never a part of one.
Constants read_constants(const Spec& spec) {
  spec.expect({std::begin(kConstantNames), std::end(kConstantNames)});
  std::set<std::string_view> present;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (spec.has(std::string(kConstantNames[i]))) present.insert(group_of(i));
  }
  Constants constants;
  for (std::size_t i = 0; i < kConstants; ++i) {
    const bool known = present.contains(group_of(i));
    constants[i] = known ? spec.number(std::string(kConstantNames[i]), 0, 1e9) : kUnknown;
  }
  return constants;
}

MachineFacts read_fitted_on(const Spec& spec) {
  spec.expect(fact_names());
  MachineFacts machine;
  for (const FactField& field : kFacts) {
    if (field.assumed == nullptr || spec.has(field.key)) machine.*field.value = read_fact(spec, field.key, field);
  }
  return machine;
}

KernelSet read_kernel_set(const std::string& name, const Spec& spec) {
  spec.expect({"date", "source", "by_name_only", "tiles", "fitted_on", "constants", "fits"});
  KernelSet set;
  set.name = name;
  set.date = spec.text("date");
  set.source = spec.text("source");
  set.tiles = spec.choice("tiles", {kNarrow, kWide}) == kNarrow ? TileSet::narrow : TileSet::wide;
  set.by_name_only = spec.has("by_name_only") && spec.choice("by_name_only", {"true", "false"}) == "true";
  set.fitted_on = read_fitted_on(spec.map("fitted_on"));
  set.constants = read_constants(spec.map("constants"));
  set.origins.fill(name);
  const Spec fits = spec.map("fits");
  for (const std::string& family : fits.keys()) {
    FamilyFit& fit = set.fits[family] = read_fit(fits.map(family));
    fit.kernel_set = name;
    fit.tiles = set.tiles;
  }
  return set;
}

// What `set` does not know, from `lender`.
void borrow(const KernelSet& lender, KernelSet& set) {
  if (lender.by_name_only) return;
  const KernelSet own = set;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (own.knows(group_of(i))) continue;
    set.constants[i] = lender.constants[i];
    set.origins[i] = lender.origins[i];
  }
  for (const auto& [family, fit] : lender.fits) {
    FamilyFit& mine = set.fits.try_emplace(family, fit).first->second;
    if (std::isnan(mine.jitter)) mine.jitter = fit.jitter;  // tables of single times do not tell it
  }
}

std::string digits(double value, int count) { return fmt::format("{:.{}g}", value, count); }

// "range: {m: [64, 32768]}, "
std::string range_yaml(const MeasuredRange& range) {
  std::vector<std::string> intervals;
  for (const auto& [dimension, interval] : range) {
    intervals.push_back(
        fmt::format("{}: [{}, {}]", name_of(dimension), digits(interval.low, 8), digits(interval.high, 8)));
  }
  return intervals.empty() ? "" : fmt::format("range: {{{}}}, ", fmt::join(intervals, ", "));
}

std::string kernel_set_yaml(const KernelSet& set) {
  std::vector<std::string> machine;
  for (const FactField& field : kFacts) {
    if (is_default(field, set.fitted_on)) continue;
    machine.push_back(fmt::format("{}: {}", field.key, set.fitted_on.*field.value));
  }
  std::string text = fmt::format(
      "  {}:\n    date: {}\n    source: \"{}\"\n{}    tiles: {}  # of FP8 GEMMs\n"
      "    fitted_on: {{{}}}\n    constants:  # {} in all\n",
      set.name, set.date, set.source, set.by_name_only ? "    by_name_only: true\n" : "",
      set.tiles == TileSet::narrow ? kNarrow : kWide, fmt::join(machine, ", "), set.known_constants());
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (!std::isnan(set.constants[i]))
      text += fmt::format("      {}: {}\n", kConstantNames[i], digits(set.constants[i], 5));
  }
  text += "    fits:  # errors of predicted / measured - 1\n";
  for (const auto& [family, fit] : set.fits) {
    text += fmt::format("      {}: {{kernels: {}, {}", family, fit.kernels, range_yaml(fit.range));
    text += fmt::format("errors: {}, median_abs_error: {}, p95_abs_error: {}, worst_error: {}, mean_error: {}{}}}\n",
                        fit.held_out ? kHeldOut : kInSample, digits(fit.median_abs_error, 3),
                        digits(fit.p95_abs_error, 3), digits(fit.worst_error, 3), digits(fit.mean_error, 3),
                        std::isnan(fit.jitter) ? "" : ", jitter: " + digits(fit.jitter, 3));
  }
  return text;
}

}  // namespace

bool KernelSet::knows(std::string_view group) const {
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (group_of(i) == group && !std::isnan(constants[i])) return true;
  }
  return false;
}

std::vector<std::pair<std::string_view, int>> known_by_group(const Constants& constants) {
  std::vector<std::pair<std::string_view, int>> groups;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (std::isnan(constants[i])) continue;
    if (groups.empty() || groups.back().first != group_of(i)) groups.emplace_back(group_of(i), 0);
    ++groups.back().second;
  }
  return groups;
}

double KernelSet::jitter(const std::string& family) const {
  const auto fit = fits.find(family);
  const double own = fit == fits.end() ? kUnknown : fit->second.jitter;
  const double of_all = (*this)[Constant::jitter];
  return !std::isnan(own) ? own : std::isnan(of_all) ? 0 : of_all;
}

int KernelSet::known_constants() const {
  return static_cast<int>(
      std::count_if(constants.begin(), constants.end(), [](double constant) { return !std::isnan(constant); }));
}

namespace {

// Null where no set has that name, or none may be chosen without it.
const KernelSet* choose(const HardwareProfile& profile, const std::string& set, std::string_view needed) {
  const KernelSet* chosen = nullptr;
  const auto look_in = [&](const std::vector<KernelSet>& candidates) {
    for (const KernelSet& candidate : candidates) {
      const bool by_default = !candidate.by_name_only && (needed.empty() || candidate.knows(needed));
      if (set.empty() ? by_default : candidate.name == set) chosen = &candidate;
    }
  };
  look_in(profile.kernel_sets);
  // By name those carried over, too; without a name only where there is nothing of the profile's own.
  const bool has_own = std::any_of(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                                   [](const KernelSet& own) { return !own.by_name_only; });
  if (chosen == nullptr && (!set.empty() || !has_own)) look_in(profile.carried_over);
  if (chosen != nullptr || !set.empty() || needed.empty()) return chosen;
  return choose(profile, set, "");
}

}  // namespace

std::vector<std::string> HardwareProfile::set_names() const {
  std::vector<std::string> names;
  for (const auto* sets : {&kernel_sets, &carried_over}) {
    for (const KernelSet& set : *sets) {
      if (std::find(names.begin(), names.end(), set.name) == names.end()) names.push_back(set.name);
    }
  }
  return names;
}

KernelSet HardwareProfile::kernels(const std::string& set, std::string_view needed) const {
  if (kernel_sets.empty() && carried_over.empty()) {
    throw SpecError(file, 0, "has no kernel set; see `moeline calibrate`");
  }
  const KernelSet* chosen = choose(*this, known_name(set, set_names()).value_or(set), needed);
  if (chosen == nullptr && set.empty()) throw SpecError(file, 0, "has kernel sets by their name only");
  if (chosen == nullptr) throw UnknownName(unknown_name("kernel set of " + name, set, set_names()));
  KernelSet complete = *chosen;
  for (auto other = kernel_sets.rbegin(); other != kernel_sets.rend(); ++other) borrow(*other, complete);
  for (const bool same_name : {true, false}) {
    for (auto other = carried_over.rbegin(); other != carried_over.rend(); ++other) {
      if (!same_name || other->name == chosen->name) borrow(*other, complete);
    }
  }
  return complete;
}

namespace {

HardwareProfile read_profile(const Spec& spec) {
  spec.expect({"name", "facts", "kernel_sets", "carried_over_from"});
  HardwareProfile profile;
  profile.name = spec.text("name");
  read_facts(spec.map("facts"), profile);
  const Spec sets = spec.map_or_empty("kernel_sets");
  for (const std::string& name : sets.keys()) profile.kernel_sets.push_back(read_kernel_set(name, sets.map(name)));
  std::stable_sort(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                   [](const KernelSet& a, const KernelSet& b) { return a.date < b.date; });
  return profile;
}

void mark_as_of(const std::string& machine, KernelSet& set) {
  const std::string name = fmt::format("{}: {}", machine, set.name);
  set.origins.fill(name);
  for (auto& [family, fit] : set.fits) {
    fit.kernel_set = name;
    fit.other_machine = true;
  }
}

// `chain`: the profiles that led here.
HardwareProfile load(const std::filesystem::path& path, std::vector<std::filesystem::path> chain) {
  const Spec spec = Spec::load(path);
  HardwareProfile profile = read_profile(spec);
  profile.file = spec.file();
  if (!spec.has("carried_over_from")) return profile;
  profile.carried_over_from = spec.text("carried_over_from");
  const auto next = at_key(spec, "carried_over_from",
                           [&] { return find_named("hardware", profile.carried_over_from, "hwprofiles", path); });
  profile.carried_over_from = spelt_as(next.stem().string(), profile.carried_over_from);
  chain.push_back(std::filesystem::weakly_canonical(path));
  if (std::find(chain.begin(), chain.end(), std::filesystem::weakly_canonical(next)) != chain.end()) {
    throw spec.error("carried_over_from", fmt::format("'{}' carries over from here", profile.carried_over_from));
  }
  HardwareProfile other = load(next, std::move(chain));
  for (KernelSet& set : other.kernel_sets) mark_as_of(profile.carried_over_from, set);
  profile.carried_over = std::move(other.carried_over);
  profile.carried_over.insert(profile.carried_over.end(), other.kernel_sets.begin(), other.kernel_sets.end());
  return profile;
}

}  // namespace

std::vector<MachineFact> list_facts(const MachineFacts& facts) {
  std::vector<MachineFact> list;
  for (const FactField& field : kFacts) list.push_back({field.key, field.unit, facts.*field.value});
  return list;
}

std::shared_ptr<const HardwareProfile> known_profile(const std::string& reference,
                                                     const std::vector<std::string>& overrides,
                                                     const std::filesystem::path& written_in) {
  static FileMemo<HardwareProfile> known;
  const std::filesystem::path path = find_named("hardware", reference, "hwprofiles", written_in);
  const auto as_written = known.get(path, [&] { return load(path, {}); });
  if (overrides.empty()) return as_written;
  const auto read = [&] {
    HardwareProfile profile = *as_written;
    override_facts(overrides, profile);
    return profile;
  };
  return known.get(path, read, fmt::format("{}", fmt::join(overrides, " ")));
}

HardwareProfile load_profile(const std::string& reference, const std::vector<std::string>& overrides,
                             const std::filesystem::path& written_in) {
  return *known_profile(reference, overrides, written_in);
}

std::string to_yaml(const HardwareProfile& profile) {
  std::string text = fmt::format("name: {}\n\n# Per GPU; links per direction.\nfacts:\n", profile.name);
  for (const FactField& field : kFacts) {
    const std::string& fact_source = profile.sources.at(field.key);
    if (field.assumed != nullptr && fact_source == field.assumed) continue;
    text += fmt::format("  {}: {{value: {}, source: \"{}\"}}\n", field.key, profile.facts.*field.value, fact_source);
  }
  if (!profile.carried_over_from.empty()) {
    text += fmt::format("\n# Whose kernel sets fill the gaps of those below.\ncarried_over_from: {}\n",
                        profile.carried_over_from);
  }
  if (profile.kernel_sets.empty()) return text;
  text += fmt::format("{}what the constants mean: model/hardware/constants.hpp\nkernel_sets:\n", kProfileMark);
  for (const KernelSet& set : profile.kernel_sets) text += kernel_set_yaml(set);
  return text;
}

}  // namespace moeline

#include "hardware/profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/memo.hpp"
#include "base/names.hpp"
#include "base/spec.hpp"
#include "hardware/profile_words.hpp"

namespace moeline {
namespace {

bool may_be_default(const KernelSet& set) { return !set.by_name_only && set.is_whole(); }

// Null where no set has that name, or none may be chosen without it.
const KernelSet* choose(const HardwareProfile& profile, const std::string& set, std::string_view needed) {
  const KernelSet* chosen = nullptr;
  const auto look_in = [&](const std::vector<KernelSet>& candidates) {
    for (const KernelSet& candidate : candidates) {
      const bool by_default = may_be_default(candidate) && (needed.empty() || candidate.knows(needed));
      if (set.empty() ? by_default : candidate.name == set) chosen = &candidate;
    }
  };
  look_in(profile.kernel_sets);
  // By name those carried over, too; without a name only where there is nothing of the profile's own.
  const bool has_own = std::any_of(profile.kernel_sets.begin(), profile.kernel_sets.end(), may_be_default);
  if (chosen == nullptr && (!set.empty() || !has_own)) look_in(profile.carried_over);
  if (chosen != nullptr || !set.empty() || needed.empty()) return chosen;
  return choose(profile, set, "");
}

}  // namespace

std::string HardwareProfile::set_named(const std::string& wanted) const {
  const std::vector<std::string> names = set_names();
  if (const auto whole = known_name(wanted, names)) return *whole;
  std::string newest;
  for (const auto* sets : {&carried_over, &kernel_sets}) {
    for (const KernelSet& set : *sets) {
      const std::size_t stack = set.name.find('-');
      if (stack != std::string::npos && same_but_for_case(wanted, set.name.substr(0, stack))) newest = set.name;
    }
  }
  return newest.empty() ? wanted : newest;
}

std::vector<std::string> HardwareProfile::set_names() const {
  std::vector<std::string> names;
  for (const auto* sets : {&kernel_sets, &carried_over}) {
    for (const KernelSet& set : *sets) {
      if (std::find(names.begin(), names.end(), set.name) == names.end()) names.push_back(set.name);
    }
  }
  return names;
}

std::vector<const KernelSet*> HardwareProfile::nearest_to_published() const {
  const auto mean_error = [](const KernelSet* set) {
    double sum = 0;
    for (const auto& [phase, error] : set->published_errors) sum += std::abs(error);
    return sum / static_cast<double>(set->published_errors.size());
  };
  std::vector<const KernelSet*> sets;
  for (const KernelSet& set : kernel_sets) {
    if (!set.published_errors.empty()) sets.push_back(&set);
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const KernelSet* a, const KernelSet* b) { return mean_error(a) < mean_error(b); });
  return sets;
}

KernelSet HardwareProfile::kernels(const std::string& set, std::string_view needed) const {
  if (kernel_sets.empty() && carried_over.empty()) {
    throw SpecError(file, 0, "has no kernel set; see `moeline calibrate`");
  }
  const KernelSet* chosen = choose(*this, set.empty() ? set : set_named(set), needed);
  if (chosen == nullptr && set.empty()) throw SpecError(file, 0, "has kernel sets by their name only");
  if (chosen == nullptr) throw UnknownName(unknown_name("kernel set of " + name, set, set_names()));
  KernelSet complete = *chosen;
  name_by_backend(complete);
  // Sets of serving stacks lend to each other first, and so do the others: an older set stays what it was.
  for (const bool of_a_stack : {chosen->of_a_stack, !chosen->of_a_stack}) {
    const auto lend = [&](const KernelSet& other) {
      if (other.of_a_stack == of_a_stack) borrow(other, complete);
    };
    std::for_each(kernel_sets.rbegin(), kernel_sets.rend(), lend);
    for (const bool akin : {true, false}) {
      for (auto other = carried_over.rbegin(); other != carried_over.rend(); ++other) {
        const bool is_akin =
            other->name == chosen->name || (chosen->stack != Stack::none && other->stack == chosen->stack);
        if (!akin || is_akin) lend(*other);
      }
    }
  }
  return complete;
}

// Profiles read from YAML, each with those that it carries over.

namespace {

using namespace profile_words;

double read_fact(const Spec& spec, const std::string& key, const FactField& field) {
  if (!field.words.empty()) {
    const std::string word = spec.choice(key, field.words);
    return static_cast<double>(std::find(field.words.begin(), field.words.end(), word) - field.words.begin());
  }
  if (field.is_count) return spec.integer(key, static_cast<int>(field.low), static_cast<int>(field.high));
  return spec.number(key, field.low, field.high);
}

void read_facts(const Spec& spec, HardwareProfile& profile) {
  spec.expect(fact_names());
  for (const FactField& field : fact_fields()) {
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
  for (const FactField& field : fact_fields()) {
    if (!spec.has(field.key)) continue;
    if (field.value == &MachineFacts::boost_clock_mhz) {
      throw spec.error(field.key,
                       "is what kernels and watts were measured at; a lower clock is one of sm_clock_mhz, "
                       "fp8_tflops and bf16_tflops together");
    }
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

// A form's constants stand with the family, each of its parts.
void read_form(const Spec& spec, FamilyFit& fit) {
  static const std::vector<std::string> kForms = form_names();
  fit.form = form_named(spec.choice("form", kForms));
  const Spec constants = spec.map("constants");
  std::vector<std::string> names;
  for (const FormPart& part : fit.form->parts) names.push_back(part.name);
  constants.expect(names);
  for (const std::string& name : names) fit.constants.push_back(constants.number(name, 0, 1e9));
}

FamilyFit read_fit(const Spec& spec) {
  static const std::vector<std::string> kKeys = {
      "kernels",  "range", "errors", "median_abs_error", "p95_abs_error", "worst_error", "mean_error", "jitter",
      "timed_by", "clock", "form",   "constants",        "median_error",  "correction"};
  spec.expect(kKeys);
  FamilyFit fit;
  if (spec.has("form")) read_form(spec, fit);
  fit.kernels = spec.integer("kernels", 1, 1 << 30);
  fit.range = read_range(spec.map_or_empty("range"));
  if (spec.has("correction")) {
    if (fit.form == nullptr) throw spec.error("correction", "is of a family with a form alone");
    fit.correction = read_correction(spec.map("correction"), fit.range);
  }
  fit.held_out = spec.choice("errors", {kInSample, kHeldOut}) == kHeldOut;
  fit.median_abs_error = spec.number("median_abs_error", 0, 1e6);
  fit.p95_abs_error = spec.number("p95_abs_error", 0, 1e6);
  fit.worst_error = spec.number("worst_error", -1, 1e6);
  fit.mean_error = spec.number("mean_error", -1, 1e6);
  if (spec.has("jitter")) fit.jitter = spec.number("jitter", 0, 1);
  if (spec.has("clock")) fit.clock = choice_at<Clock>(spec, "clock", kClocks);
  if (spec.has("median_error")) fit.median_error = spec.number("median_error", -1, 1e6);
  const std::string timed_by =
      spec.has("timed_by") ? spec.choice("timed_by", {kHostClock, kDeviceClock, kGraphClock}) : kDeviceClock;
  fit.host_timed = timed_by == kHostClock;
  fit.graph_timed = timed_by == kGraphClock;
  return fit;
}

// A set may leave out whole groups of constants, never a part of one.
Constants read_constants(const Spec& spec) {
  std::vector<std::string> names;
  for (const ConstantRow& row : kConstantTable) names.emplace_back(row.name);
  spec.expect(names);
  std::set<std::string_view> present;
  for (std::size_t i = 0; i < kConstants; ++i) {
    if (spec.has(std::string(constant_name(i)))) present.insert(group_of(i));
  }
  Constants constants;
  for (std::size_t i = 0; i < kConstants; ++i) {
    const bool known = present.contains(group_of(i));
    constants[i] = known ? spec.number(std::string(constant_name(i)), 0, 1e9) : kUnknown;
  }
  return constants;
}

MachineFacts read_fitted_on(const Spec& spec) {
  spec.expect(fact_names());
  MachineFacts machine;
  for (const FactField& field : fact_fields()) {
    if (field.assumed == nullptr || spec.has(field.key)) machine.*field.value = read_fact(spec, field.key, field);
  }
  return machine;
}

KernelSet read_kernel_set(const std::string& name, const Spec& spec) {
  spec.expect({"date", "source", "stack", "by_name_only", "tiles", "clock", "fitted_on", "constants", "fits",
               "published_errors"});
  KernelSet set;
  set.name = name;
  set.date = spec.text("date");
  set.source = spec.text("source");
  set.tiles = spec.choice("tiles", {kNarrow, kWide}) == kNarrow ? TileSet::narrow : TileSet::wide;
  if (spec.has("stack")) set.stack = choice_at<Stack>(spec, "stack", kStacks);
  if (spec.has("clock")) set.clock = choice_at<Clock>(spec, "clock", kClocks);
  set.by_name_only = spec.has("by_name_only") && spec.choice("by_name_only", {"true", "false"}) == "true";
  set.fitted_on = read_fitted_on(spec.map("fitted_on"));
  set.constants = read_constants(spec.map_or_empty("constants"));
  set.origins.fill(name);
  const Spec errors = spec.map_or_empty("published_errors");
  errors.expect({"decode", "prefill"});
  for (const std::string& phase : errors.keys()) set.published_errors[phase] = errors.number(phase, -1, 1e6);
  const Spec fits = spec.map("fits");
  for (const std::string& family : fits.keys()) {
    const Spec written = fits.map(family);
    FamilyFit& fit = set.fits[family] = read_fit(written);
    set.of_a_stack = set.of_a_stack || fit.form != nullptr;
    fit.kernel_set = name;
    fit.tiles = set.tiles;
    if (!written.has("clock")) fit.clock = set.clock;
  }
  return set;
}

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

HardwareProfile read_profile(const std::filesystem::path& file) { return load(file, {}); }

std::shared_ptr<const HardwareProfile> known_profile(const std::string& reference,
                                                     const std::vector<std::string>& overrides,
                                                     const std::filesystem::path& written_in) {
  static FileMemo<HardwareProfile> known;
  const std::filesystem::path path = find_named("hardware", reference, "hwprofiles", written_in);
  const auto as_written = known.get(path, [&] { return read_profile(path); });
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

}  // namespace moeline

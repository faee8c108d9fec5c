#include "hardware/profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/memo.hpp"
#include "base/names.hpp"
#include "base/spec.hpp"
#include "hardware/profile_words.hpp"

namespace moeline {
namespace {

bool may_be_default(const KernelSet& set) { return !set.by_name_only && (set.is_whole() || !set.learnt.empty()); }

// Null where no set has that name, or none may be chosen without it.
const KernelSet* choose(const HardwareProfile& profile, const std::string& set, std::string_view needed) {
  const KernelSet* chosen = nullptr;
  const auto look_in = [&](const std::vector<KernelSet>& candidates) {
    for (const KernelSet& candidate : candidates) {
      const bool has_needed = needed.empty() || candidate.knows(needed) || !candidate.learnt.empty();
      const bool by_default = may_be_default(candidate) && has_needed;
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

// A set by which kernels of the set below it are priced, as a trace says.
KernelSet learnt_over(KernelSet below, const KernelSet& set) {
  below.tables = below.fitted_name();
  below.name = set.name;
  below.date = set.date;
  below.source = set.source;
  below.learnt = set.learnt;
  if (set.learnt.host_us_per_kernel > 0) {
    constexpr auto kHost = static_cast<std::size_t>(Constant::host_per_kernel);
    below.constants[kHost] = set.learnt.host_us_per_kernel;
    below.origins[kHost] = set.name;
  }
  return below;
}

// Names that need no set of their own.
std::vector<std::string> with_stacks(std::vector<std::string> names) {
  for (const Stack stack : {Stack::vllm, Stack::megatron}) names.push_back(name_of(stack));
  return names;
}

constexpr std::string_view kOver = " over ";

// Of "vllm over sglang-0.5.14" the tables; another name is theirs.
std::string tables_of(const std::string& set) {
  const std::size_t over = set.find(kOver);
  return over == std::string::npos ? set : set.substr(over + kOver.size());
}

// A stack's habits over the tables of a set.
struct HabitsOver {
  Stack stack;
  std::string set;
};

// Where it has none of its own, the nearest there are: vLLM runs FlashInfer's copies of TensorRT-LLM's kernels on
// Blackwell, and FlashAttention-3, Triton and DeepGEMM before, as SGLang does.
std::string nearest_tables(Stack stack, const HardwareProfile& profile) {
  if (stack != Stack::vllm) return "";
  const bool blackwell = profile.facts.generation() == Generation::blackwell;
  for (const char* tables : {blackwell ? "trtllm" : "sglang", "sglang"}) {
    if (profile.set_named(tables) != tables) return tables;
  }
  return "";
}

std::optional<HabitsOver> habits_over(const std::string& set, const HardwareProfile& profile) {
  const std::size_t over = set.find(kOver);
  const auto stack = known_name(set.substr(0, over), profile_words::kStacks);
  if (!stack || *stack == name_of(Stack::none)) return std::nullopt;
  const auto whose = choice_of<Stack>(*stack, profile_words::kStacks);
  if (over != std::string::npos) return HabitsOver{whose, tables_of(set)};
  const bool may_lack_tables = whose == Stack::vllm || whose == Stack::megatron;
  if (!may_lack_tables || profile.set_named(set) != set) return std::nullopt;
  return HabitsOver{whose, nearest_tables(whose, profile)};
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
    throw SpecError(file, 0, kNoKernelSet);
  }
  if (const auto habits = habits_over(set, *this)) {
    KernelSet below = kernels(habits->set, needed);
    below.tables = below.fitted_name();
    below.name = fmt::format("{} over {}", name_of(habits->stack), below.name);
    below.stack = habits->stack;
    return below;
  }
  const KernelSet* chosen = choose(*this, set.empty() ? set : set_named(set), needed);
  if (chosen == nullptr && set.empty()) throw SpecError(file, 0, "has kernel sets by their name only");
  if (chosen == nullptr) throw UnknownName(unknown_name("kernel set of " + name, set, with_stacks(set_names())));
  if (!chosen->learnt.empty()) return learnt_over(kernels(chosen->learnt.over, needed), *chosen);
  KernelSet complete = *chosen;
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
  fit.range = read_measured_range(spec.map_or_empty("range"));
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

KernelSet read_learnt_set(const std::string& name, const Spec& spec) {
  spec.expect({"date", "source", "over", "learnt"});
  KernelSet set;
  set.name = name;
  set.date = spec.text("date");
  set.source = spec.text("source");
  set.constants.fill(kUnknown);
  set.learnt = read_learnt(spec.map("learnt"));
  set.learnt.over = spec.text("over");
  return set;
}

KernelSet read_kernel_set(const std::string& name, const Spec& spec) {
  if (spec.has("learnt")) return read_learnt_set(name, spec);
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

const std::vector<std::string> kProfileKeys = {"name", "extends", "facts", "kernel_sets", "carried_over_from"};

void read_kernel_sets(const Spec& spec, HardwareProfile& profile) {
  const Spec sets = spec.map_or_empty("kernel_sets");
  for (const std::string& name : sets.keys()) {
    profile.kernel_sets.push_back(read_kernel_set(name, sets.map(name)));
    profile.kernel_sets.back().generation = profile.facts.generation();
  }
  std::stable_sort(profile.kernel_sets.begin(), profile.kernel_sets.end(),
                   [](const KernelSet& a, const KernelSet& b) { return a.date < b.date; });
}

// Factors go with the curves of a set that was fitted.
void check_learnt_sets(const Spec& spec, const HardwareProfile& profile) {
  std::vector<std::string> fitted = profile.set_names();
  for (const KernelSet& set : profile.kernel_sets) {
    if (!set.learnt.empty()) std::erase(fitted, set.name);
  }
  for (const KernelSet& set : profile.kernel_sets) {
    if (set.learnt.empty() || known_name(tables_of(set.learnt.over), fitted)) continue;
    const Spec written = spec.map("kernel_sets").map(set.name);
    throw written.error("over", "names an " + unknown_name("kernel set", set.learnt.over, fitted));
  }
}

HardwareProfile read_profile(const Spec& spec) {
  spec.expect(kProfileKeys);
  HardwareProfile profile;
  profile.name = spec.text("name");
  read_facts(spec.map("facts"), profile);
  read_kernel_sets(spec, profile);
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

using Chain = std::vector<std::filesystem::path>;  // of profiles, each of which names the next

HardwareProfile load(const std::filesystem::path& path, Chain chain);

// The profile that one of this file's keys names.
HardwareProfile load_next(const Spec& spec, const char* key, const char* does, const std::filesystem::path& path,
                          Chain chain, std::string& name) {
  name = spec.text(key);
  const auto next = at_key(spec, key, [&] { return find_named("hardware", name, "hwprofiles", path); });
  name = spelt_as(next.stem().string(), name);
  chain.push_back(std::filesystem::weakly_canonical(path));
  if (std::find(chain.begin(), chain.end(), std::filesystem::weakly_canonical(next)) != chain.end()) {
    throw spec.error(key, fmt::format("'{}' {} here", name, does));
  }
  return load(next, std::move(chain));
}

// All of another profile, and kernel sets beside its own.
HardwareProfile load_extended(const Spec& spec, const std::filesystem::path& path, Chain chain) {
  spec.expect(kProfileKeys);
  for (const char* key : {"facts", "carried_over_from"}) {
    if (spec.has(key)) throw spec.error(key, "does not go with extends: they are those of the other profile");
  }
  std::string extended;
  HardwareProfile profile = load_next(spec, "extends", "extends what is", path, std::move(chain), extended);
  profile.name = spec.text("name");
  profile.file = spec.file();
  read_kernel_sets(spec, profile);
  check_learnt_sets(spec, profile);
  return profile;
}

HardwareProfile load(const std::filesystem::path& path, Chain chain) {
  const Spec spec = Spec::load(path);
  if (spec.has("extends")) return load_extended(spec, path, std::move(chain));
  HardwareProfile profile = read_profile(spec);
  profile.file = spec.file();
  if (!spec.has("carried_over_from")) {
    check_learnt_sets(spec, profile);
    return profile;
  }
  HardwareProfile other =
      load_next(spec, "carried_over_from", "carries over from", path, std::move(chain), profile.carried_over_from);
  for (KernelSet& set : other.kernel_sets) mark_as_of(profile.carried_over_from, set);
  profile.carried_over = std::move(other.carried_over);
  profile.carried_over.insert(profile.carried_over.end(), other.kernel_sets.begin(), other.kernel_sets.end());
  check_learnt_sets(spec, profile);
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

// moeline list: what there is, and what a profile knows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "architecture/model_families.hpp"
#include "architecture/parameters.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/arguments.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/family_coverage.hpp"
#include "experiments/cli/output/hardware_table.hpp"
#include "experiments/report/fields.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

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

Keys dimension_keys() { return keys_of_profiles({"definitions", "family", "properties", "range"}); }

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

struct ListedModelFamily {
  std::string model_type;
  std::vector<std::string> modelled, described;
};
using ModelFamilies = std::vector<ListedModelFamily>;

ModelFamilies model_families_named(const std::string& name) {
  std::map<std::string, std::vector<std::string>> described;
  for (const std::string& model : names_in("model/zoo"))
    described[load_architecture(model).model_type].push_back(model);
  const std::vector<std::string> all = model_types();
  ModelFamilies list;
  for (const std::string& type : name.empty() ? all : std::vector<std::string>{expect_name("family", name, all)}) {
    list.push_back({type, parts_of_family(type), described[type]});
  }
  return list;
}

Fields<ListedModelFamily> model_family_fields() {
  return Fields<ListedModelFamily>()
      .add("model_type", "of config.json", &ListedModelFamily::model_type)
      .add("modelled", "what of it", &ListedModelFamily::modelled)
      .add("described", "models of it", &ListedModelFamily::described);
}

Fields<ModelFamilies> families_fields() {
  return output_fields<ModelFamilies>().list("families", "families of models", std::identity(), model_family_fields());
}

// Rows of Markdown, as on the page of model/zoo.
std::string families_table(const ModelFamilies& families) {
  std::string text = "| model_type | modelled | described here |\n|---|---|---|\n";
  for (const ListedModelFamily& family : families) {
    text += fmt::format("| {} | {} | {} |\n", family.model_type, fmt::join(family.modelled, ", "),
                        fmt::join(family.described, ", "));
  }
  return text;
}

Fields<Architecture> listed_model() {
  return Fields<Architecture>()
      .add("name", "name", &Architecture::name)
      .add("model_type", "of its config.json", &Architecture::model_type)
      .add("parameters", "parameters, MTP modules left out", [](auto& m) { return parameters(m); }, {.decimals = 0})
      .add("active_parameters", "parameters that one token passes through",
           [](auto& m) { return active_parameters(m); }, {.decimals = 0});
}

Fields<std::vector<Architecture>> models_fields() {
  return output_fields<std::vector<Architecture>>().list("models", "described models", std::identity(), listed_model());
}

// Every key of a YAML file as it stands there.
YamlNode content_of_file(const std::filesystem::path& file) { return parse_yaml(file.string(), read_text(file)); }

// `name`: as it was asked for, a file perhaps.
Fields<Architecture> one_model_fields(const std::string& name) {
  return output_fields<Architecture>()
      .all(std::identity(), listed_model())
      .add("fields", "of its configuration, as they stand in the description",
           [=](auto&) { return content_of_file(find_named("model", name, "model/zoo")); });
}

Fields<ScheduleKind> listed_schedule() {
  return Fields<ScheduleKind>()
      .add("name", "what runs when", &ScheduleKind::name, {.words = schedule_names()})
      .add("about", "one line", &ScheduleKind::about)
      .add("phases", "that it is for", [](auto& s) { return words_of(s.phases); },
           {.words = words_of<WorkloadPhase>()});
}

Fields<std::vector<ScheduleKind>> schedules_fields() {
  return output_fields<std::vector<ScheduleKind>>().list("schedules", "schedules", std::identity(), listed_schedule());
}

std::filesystem::path plan_file(const ScheduleKind& schedule) {
  return home() / "schedules" / (schedule.plan + ".yaml");
}

Fields<ScheduleKind> one_schedule_fields() {
  return output_fields<ScheduleKind>()
      .all(std::identity(), listed_schedule())
      .add("plan", "its overlap plan (overlap_plan.json)", [](auto& s) {
        const bool has_plan = !s.plan.empty() && !s.pipeline;
        return has_plan ? std::optional(content_of_file(plan_file(s))) : std::nullopt;
      });
}

template <class T, class Load>
std::vector<T> all_named(const std::string& folder, Load load) {
  std::vector<T> all;
  for (const std::string& name : names_in(folder)) all.push_back(load(name));
  return all;
}

std::string models_json(const std::string& name) {
  if (!name.empty()) return one_model_fields(name).json(load_architecture(name));
  return models_fields().json(
      all_named<Architecture>("model/zoo", [](const std::string& each) { return load_architecture(each); }));
}

std::string hardware_json(const std::string& name) {
  if (name.empty()) {
    return machines_fields().json(
        all_named<HardwareProfile>("hwprofiles", [](const std::string& each) { return load_profile(each); }));
  }
  const HardwareProfile profile = load_profile(name);
  return machine_fields(profile.facts).json(profile);
}

std::string json_of(const std::string& kind, const std::string& name) {
  if (kind == "models") return models_json(name);
  if (kind == "hardware") return hardware_json(name);
  if (kind == "families") return families_fields().json(model_families_named(name));
  return name.empty() ? schedules_fields().json(schedule_kinds()) : one_schedule_fields().json(schedule_named(name));
}

void list_schedule(const std::string& name, const Console& console) {
  const ScheduleKind& schedule = schedule_named(name);
  if (schedule.pipeline) {
    console.print(
        "# a whole pipeline: F&B by the plan of dualpipe-chunk; or slots that take what slot_costs_ms says\n");
    return;
  }
  console.print(schedule.plan.empty() ? "# no overlap plan: one phase at a time\n" : read_text(plan_file(schedule)));
}

void list(const std::string& kind, const std::string& name, const Console& console) {
  if (kind == "families") {
    console.print(families_table(model_families_named(name)));
  } else if (name.empty()) {
    const std::vector<std::string> names = kind == "models"     ? names_in("model/zoo")
                                           : kind == "hardware" ? names_in("hwprofiles")
                                                                : schedule_names();
    for (const std::string& each : names) console.print(fmt::format("{}\n", each));
  } else if (kind == "models") {
    console.print(read_text(find_named("model", name, "model/zoo")));
  } else if (kind == "hardware") {
    console.print(hardware_table(load_profile(name)));
  } else {
    list_schedule(name, console);
  }
}

}  // namespace

std::string list_schema() {
  return output_schema("list", "`moeline list models|families|hardware|schedules [NAME] --format json`",
                       {{"`list models`", models_fields().described()},
                        {"`list models NAME`", one_model_fields("").described()},
                        {"`list families [NAME]`", families_fields().described()},
                        {"`list hardware`", machines_fields().described()},
                        {"`list hardware NAME`", machine_fields({}).described()},
                        {"`list schedules`", schedules_fields().described()},
                        {"`list schedules NAME`", one_schedule_fields().described()}});
}

void add_list(CLI::App& app, Console& console) {
  auto kind = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>("table");
  CLI::App* command =
      app.add_subcommand("list", "models, families of models, hardware or schedules, or what one of them holds");
  command->add_option("kind", *kind, "models, families, hardware or schedules")
      ->required()
      ->transform(one_of({"models", "families", "hardware", "schedules"}));
  command->add_option("name", *name, "print this one");
  command->add_option("--format", *format, "of the result on stdout")->transform(one_of({"table", "json"}));
  command->callback([kind, name, format, &console] {
    *format == "json" ? console.print(json_of(*kind, *name)) : list(*kind, *name, console);
  });
}

}  // namespace moeline

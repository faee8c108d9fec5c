// moeline list: what there is, and what a profile knows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <memory>

#include "architecture/model_families.hpp"
#include "architecture/parameters.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/hardware_output.hpp"
#include "experiments/report/fields.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

struct ListOptions {
  std::string kind, name;
  std::string format = "table";
};

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

Command make_list(Console& console) {
  auto options = std::make_shared<ListOptions>();
  return {.name = "list",
          .about = "models, families of models, hardware or schedules, or what one of them holds",
          .options = {required({"kind", &options->kind, "models, families, hardware or schedules",
                                OneOf{"models", "families", "hardware", "schedules"}}),
                      {"name", &options->name, "print this one"},
                      format_option(options->format, {"table", "json"}, "of the result on stdout")},
          .run = [options, &console] {
            const auto& [kind, name, format] = *options;
            format == "json" ? console.print(json_of(kind, name)) : list(kind, name, console);
          }};
}

}  // namespace moeline

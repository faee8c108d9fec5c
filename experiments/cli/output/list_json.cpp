#include "experiments/cli/output/list_json.hpp"

#include "architecture/parameters.hpp"
#include "base/file.hpp"
#include "base/yaml.hpp"
#include "experiments/cli/output/json.hpp"
#include "schedules/scenario/schedule_kinds.hpp"

namespace moeline {
namespace {

void add_model(Json& json, const Architecture& model) {
  json.add("name", model.name).add("model_type", model.model_type);
  json.add("parameters", parameters(model), 0).add("active_parameters", active_parameters(model), 0);
}

// Every key of a YAML file as it stands there.
void add_file(Json& json, std::string_view key, const std::filesystem::path& file) {
  json.add(key, parse_yaml(file.string(), read_text(file)));
}

void add_schedule(Json& json, const ScheduleKind& schedule) {
  json.add("name", schedule.name).add("about", schedule.about).add("phases", words_of(schedule.phases));
}

}  // namespace

std::string models_json() {
  Json json;
  json.open().add("schema_version", 1).open_list("models");
  for (const std::string& name : names_in("model/zoo")) {
    json.open();
    add_model(json, load_architecture(name));
    json.close();
  }
  return json.close_list().close().text();
}

std::string model_json(const std::string& name) {
  const std::filesystem::path file = find_named("model", name, "model/zoo");
  Json json;
  json.open().add("schema_version", 1);
  add_model(json, load_architecture(name));
  add_file(json, "fields", file);
  return json.close().text();
}

std::string schedules_json() {
  Json json;
  json.open().add("schema_version", 1).open_list("schedules");
  for (const ScheduleKind& schedule : schedule_kinds()) {
    json.open();
    add_schedule(json, schedule);
    json.close();
  }
  return json.close_list().close().text();
}

std::string schedule_json(const std::string& name) {
  Json json;
  json.open().add("schema_version", 1);
  const ScheduleKind& schedule = schedule_named(name);
  add_schedule(json, schedule);
  const bool has_plan = !schedule.plan.empty() && !schedule.pipeline;
  if (has_plan) add_file(json, "plan", home() / "schedules" / (schedule.plan + ".yaml"));
  return json.close().text();
}

}  // namespace moeline

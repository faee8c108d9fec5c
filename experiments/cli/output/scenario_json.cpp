#include "experiments/cli/output/scenario_json.hpp"

#include "schedules/scenario/keys.hpp"

namespace moeline {
namespace {

void add_entries(Json& json, const std::string& name, const std::vector<keys::Entry>& entries);

void add_value(Json& json, const std::string& name, const keys::Value& value) {
  const auto add = [&](const auto& known) {
    using T = std::decay_t<decltype(known)>;
    if constexpr (std::is_same_v<T, std::vector<keys::Entry>>) {
      add_entries(json, name, known);
    } else if constexpr (std::is_same_v<T, bool>) {
      json.flag(name, known);
    } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>) {
      json.exact(name, known);
    } else if constexpr (!std::is_same_v<T, std::monostate>) {
      json.add(name, known);
    }
  };
  std::visit(add, value);
}

void add_entries(Json& json, const std::string& name, const std::vector<keys::Entry>& entries) {
  json.open(name);
  for (const keys::Entry& entry : entries) add_value(json, entry.name, entry.value);
  json.close();
}

}  // namespace

void add_pipeline_scenario(Json& json, const Scenario& scenario) {
  add_entries(json, "scenario", keys::resolved_pipeline(scenario));
}

void add_scenario(Json& json, const Setup& setup) { add_entries(json, "scenario", keys::resolved(setup)); }

}  // namespace moeline

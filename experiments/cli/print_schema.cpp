#include "experiments/cli/print_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/analysis_output.hpp"
#include "experiments/cli/output/compare_output.hpp"
#include "experiments/cli/output/decide_output.hpp"
#include "experiments/cli/output/explain_output.hpp"
#include "experiments/cli/output/learn_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/search_output.hpp"
#include "experiments/cli/output/simulate_output.hpp"
#include "experiments/cli/output/sweep_output.hpp"
#include "experiments/cli/output/validate_output.hpp"

namespace moeline {
namespace {

constexpr const char* kFolder = "experiments/schema";

using Described = std::map<std::string, std::string (*)()>;

const Described& described() {
  static const Described kSchemas = {
      {"analyze_output", analyze_schema},   {"balance_output", balance_schema},   {"compare_output", compare_schema},
      {"decide_output", decide_schema},     {"explain_output", explain_schema},   {"learn_output", learn_schema},
      {"hardware_output", hardware_schema}, {"list_output", list_schema},         {"model_output", model_schema},
      {"plan_output", plan_schema},         {"price_output", price_schema},       {"replay_output", replay_schema},
      {"search_output", search_schema},     {"simulate_output", simulate_schema}, {"sweep_output", sweep_schema},
      {"validate_output", validate_schema}};
  return kSchemas;
}

std::string all_schemas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n", name, schema_text(name));
  return "{\n" + text + "}\n";
}

}  // namespace

std::vector<std::string> schema_names() {
  std::vector<std::string> names = names_in(kFolder, ".json");
  for (const auto& [name, schema] : described()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string schema_text(const std::string& name) {
  const auto found = described().find(name);
  if (found != described().end()) return found->second();
  std::string text = read_text(home() / kFolder / (name + ".json"));
  if (name == "scenario") return with_keys(std::move(text), Scenarios::read);
  return with_metrics(std::move(text));
}

std::string printed_schema(const std::string& name) {
  const std::vector<std::string> names = schema_names();
  return name.empty() ? all_schemas(names) : schema_text(expect_name("schema", name, names));
}

}  // namespace moeline

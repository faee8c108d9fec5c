#include "experiments/cli/print_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/output/analysis_output.hpp"
#include "experiments/cli/output/compare_output.hpp"
#include "experiments/cli/output/explain_output.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/plan_output.hpp"
#include "experiments/cli/output/scenario_json.hpp"
#include "experiments/cli/output/search_output.hpp"
#include "experiments/cli/output/serve_output.hpp"
#include "experiments/cli/output/sweep_output.hpp"
#include "experiments/cli/output/validate_output.hpp"

namespace moeline {
namespace {

constexpr const char* kFolder = "experiments/schema";

using Described = std::map<std::string, std::string (*)()>;

const Described& described() {
  static const Described kSchemas = {
      {"analyze_output", analyze_schema}, {"balance_output", balance_schema}, {"compare_output", compare_schema},
      {"explain_output", explain_schema}, {"list_output", list_schema},       {"model_output", model_schema},
      {"plan_output", plan_schema},       {"price_output", price_schema},     {"replay_output", replay_schema},
      {"search_output", search_schema},   {"sweep_output", sweep_schema},     {"validate_output", validate_schema}};
  return kSchemas;
}

std::string all_schemas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n", name, schema_text(name));
  return "{\n" + text + "}\n";
}

std::string schemas(const std::vector<std::string>& wanted) {
  const std::vector<std::string> names = schema_names();
  if (wanted.empty() || wanted.front().empty()) return all_schemas(names);
  return schema_text(expect_name("schema", wanted.front(), names));
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
  if (name == "simulate_output") {
    text = with_definition(with_keys(std::move(text), Scenarios::printed), "requests", serve_definition());
  }
  return with_metrics(std::move(text));
}

void add_print_schema(CLI::App& app) {
  const auto print = [](const std::vector<std::string>& name) -> bool {
    throw CLI::Success(schemas(name), CLI::ExitCodes::Success);
  };
  app.add_option("--print-schema", print, "the JSON Schema of one input or output, or of all")
      ->type_name("[NAME]")
      ->expected(0, 1);
}

}  // namespace moeline

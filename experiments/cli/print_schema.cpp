#include "experiments/cli/print_schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/output/metrics_output.hpp"
#include "experiments/cli/output/scenario_schema.hpp"

namespace moeline {
namespace {

constexpr const char* kFolder = "experiments/schema";

std::string all_schemas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n", name, schema_text(name));
  return "{\n" + text + "}\n";
}

std::string schemas(const std::vector<std::string>& wanted) {
  const std::vector<std::string> names = names_in(kFolder, ".json");
  if (wanted.empty() || wanted.front().empty()) return all_schemas(names);
  return schema_text(expect_name("schema", wanted.front(), names));
}

}  // namespace

std::string schema_text(const std::string& name) {
  std::string text = read_text(home() / kFolder / (name + ".json"));
  if (name == "scenario") return with_keys(std::move(text), Scenarios::read);
  if (name == "simulate_output") text = with_keys(std::move(text), Scenarios::printed);
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

// Every file of the repository that the program reads is as its schema says.
#include <doctest/doctest.h>

#include <set>

#include "tests/support/schema.hpp"

TEST_SUITE("schema/examples") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// By the keys that files of one kind alone have; "": a model's description, or the command line of a study.
std::string schema_for(const JsonValue& file) {
  const auto has = [&](const char* key) { return file.HasMember(key); };
  if (has("facts") && has("name")) return "profile";
  if (has("facts")) return "facts";
  if (has("served")) return "served_study";
  if (has("pairs")) return "pair_study";
  if (has("axes")) return "study";
  if (has("traffic") || has("search") || (has("training") && file["training"].HasMember("gpus"))) return "plan";
  if (has("compute")) return "overlap_plan";
  if (has("rows")) return "tables";
  return has("workload") ? "scenario" : "";
}

std::vector<std::filesystem::path> files_of(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source(folder))) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("every scenario, plan, study, machine and fact of the repository is as its schema says") {
  std::set<std::string> met;
  for (const char* folder : {"experiments", "hwprofiles", "schedules", "tests/published", "calib/tables"}) {
    for (const std::filesystem::path& file : files_of(folder)) {
      const rapidjson::Document document = json_of_yaml(content_of(file));
      const std::string schema = schema_for(document);
      if (schema.empty()) {
        CHECK_MESSAGE(document.HasMember("model_type"), file.string() << " is of no kind that has a schema");
        continue;
      }
      CAPTURE(file.string());
      check_by_schema(schema, document);
      met.insert(schema);
    }
  }
  CHECK(met == std::set<std::string>{"profile", "facts", "served_study", "pair_study", "study", "plan", "overlap_plan",
                                     "tables", "scenario"});
}

TEST_CASE("the mapping file on the page of traces is as its schema says") {
  const std::string page = content_of(source("model/measured/README.md"));
  const std::size_t begin = page.find("    schema: 1\n"), end = page.find("\n\n", begin);
  REQUIRE(begin != std::string::npos);
  std::string file;
  std::istringstream lines(page.substr(begin, end - begin));
  for (std::string line; std::getline(lines, line);) file += line.substr(4) + "\n";
  check_by_schema("kernel_map", json_of_yaml(file));
}

}  // TEST_SUITE("schema/examples")

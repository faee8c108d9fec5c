#include "experiments/cli/output/family_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

#include "architecture/architecture.hpp"
#include "architecture/model_families.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "experiments/cli/output/json.hpp"

namespace moeline {
namespace {

struct ListedFamily {
  std::string model_type;
  std::vector<std::string> modelled, described;
};

std::vector<ListedFamily> families(const std::string& name) {
  std::map<std::string, std::vector<std::string>> described;
  for (const std::string& model : names_in("model/zoo"))
    described[load_architecture(model).model_type].push_back(model);
  const std::vector<std::string> all = model_types();
  std::vector<ListedFamily> list;
  for (const std::string& type : name.empty() ? all : std::vector<std::string>{expect_name("family", name, all)}) {
    list.push_back({type, parts_of_family(type), described[type]});
  }
  return list;
}

}  // namespace

std::string families_table(const std::string& name) {
  std::string text = "| model_type | modelled | described here |\n|---|---|---|\n";
  for (const ListedFamily& family : families(name)) {
    text += fmt::format("| {} | {} | {} |\n", family.model_type, fmt::join(family.modelled, ", "),
                        fmt::join(family.described, ", "));
  }
  return text;
}

std::string families_json(const std::string& name) {
  Json json;
  json.open().add("schema_version", 1).open_list("families");
  for (const ListedFamily& family : families(name)) {
    json.open().add("model_type", family.model_type);
    json.add("modelled", family.modelled).add("described", family.described).close();
  }
  return json.close_list().close().text();
}

}  // namespace moeline

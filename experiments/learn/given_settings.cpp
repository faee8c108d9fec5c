#include "experiments/learn/given_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"

namespace moeline {
namespace {

// As YAML on one line.
std::string on_one_line(const YamlNode& node) {
  std::vector<std::string> items;
  for (const YamlNode& item : node.items) {
    items.push_back(node.is_map() ? fmt::format("{}: {}", item.key, on_one_line(item)) : on_one_line(item));
  }
  if (node.is_map()) return fmt::format("{{{}}}", fmt::join(items, ", "));
  if (node.is_list()) return fmt::format("[{}]", fmt::join(items, ", "));
  return node.quoted && !is_plain(node.word) ? fmt::format("\"{}\"", node.word) : node.word;
}

// A mapping and one of its keys cannot both be given.
void check_other_level(const std::string& key, const Settings& settings) {
  for (const Setting& other : settings.all()) {
    const bool clashes = other.key.starts_with(key + ".") || key.starts_with(other.key + ".");
    if (!clashes || other.how != HowKnown::given || other.why != "--set") continue;
    throw SpecError(fmt::format("--set {}: --set {} says it already", key, other.key));
  }
}

// A path in a scenario is meant from its folder.
void resolve_paths(const std::string& file, Settings& settings) {
  for (Setting& setting : settings.all()) {
    if (setting.key != "model" && setting.key != "hardware") continue;
    std::error_code failed;
    const std::filesystem::path path = beside(file, setting.value);
    if (std::filesystem::exists(path, failed))
      setting.value = std::filesystem::absolute(path).lexically_normal().string();
  }
}

}  // namespace

void take_scenario(const std::string& file, const std::string& text, HowKnown how, const char* why,
                   Settings& settings) {
  const YamlNode scenario = parse_yaml(file, text);
  for (const YamlNode& entry : scenario.items) {
    if (entry.key == "schema" || entry.key == "schema_version") continue;
    if (!entry.is_map() || entry.items.empty()) {
      settings.put({entry.key, on_one_line(entry), how, why});
      continue;
    }
    for (const YamlNode& item : entry.items) {
      const std::string key = entry.key + "." + item.key;
      // Resolved, it is the graph of this batch alone: whoever asks for another batch means the stack's own list.
      if (key != "workload.graph_batch" || !item.is_word() || !as_number<int>(item.word)) {
        settings.put({key, on_one_line(item), how, why});
      }
    }
  }
}

void take_given(const GivenSettings& given, Settings& settings) {
  if (!given.scenario.empty()) {
    take_scenario(given.scenario_file, given.scenario, HowKnown::given, "--scenario", settings);
    resolve_paths(given.scenario_file, settings);
  }
  if (!given.model.empty()) settings.put({"model", given.model, HowKnown::given, "--model"});
  if (!given.hardware.empty()) settings.put({"hardware", given.hardware, HowKnown::given, "--hardware"});
  constexpr std::string_view kFacts = "hardware.";
  std::vector<std::string> facts;
  for (const std::string& assignment : given.assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) throw SpecError(fmt::format("--set '{}': write key=value", assignment));
    const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
    check_other_level(key, settings);
    if (key.starts_with(kFacts)) {
      facts.push_back(key.substr(kFacts.size()) + "=" + value);
    } else {
      settings.put({key, value, HowKnown::given, "--set"});
    }
  }
  if (facts.empty()) return;
  if (const Setting* before = settings.find("hardware_overrides")) {  // those come first
    facts.insert(facts.begin(), before->value.substr(1, before->value.size() - 2));
    if (facts.front().empty()) facts.erase(facts.begin());
  }
  settings.put({"hardware_overrides", fmt::format("[{}]", fmt::join(facts, ", ")), HowKnown::given, "--set"});
}

}  // namespace moeline

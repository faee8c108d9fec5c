#include "experiments/cli/output/scenario_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/document.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "experiments/serve/serve_keys.hpp"
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

std::string scenario_text(const Setup& setup) {
  Json json;
  json.open();
  for (const keys::Entry& entry : keys::resolved(setup)) add_value(json, entry.name, entry.value);
  json.close();
  return json.text();
}

void add_scenario(Json& json, const Setup& setup) { add_entries(json, "scenario", keys::resolved(setup)); }

namespace {

std::string object_of(const std::vector<keys::Row>& rows, Scenarios scenarios);

// The members of a key's schema.
std::string members_of(const keys::Row& row, Scenarios scenarios) {
  const bool printed = scenarios == Scenarios::printed;
  const std::string& meaning = printed ? row.resolved_meaning : row.meaning;
  std::vector<std::string> members;
  if (!meaning.empty()) members.push_back(fmt::format(R"("description": "{}")", meaning));
  const keys::Type& type = printed ? row.resolved_type : row.type;
  members.push_back(row.keys.empty() ? type.schema
                    : row.is_list ? fmt::format(R"("type": "array", "items": {{{}}})", object_of(row.keys, scenarios))
                                  : object_of(row.keys, scenarios));
  if (!printed && !row.fallback.empty()) members.push_back(fmt::format(R"("default": {})", row.fallback));
  return fmt::format("{}", fmt::join(members, ", "));
}

// The members of a mapping's schema.
std::string object_of(const std::vector<keys::Row>& rows, Scenarios scenarios) {
  std::vector<std::string> required, properties;
  for (const keys::Row& row : rows) {
    const bool printed = scenarios == Scenarios::printed;
    if (printed && row.in_resolved == keys::Resolved::never) continue;
    if (printed ? row.in_resolved == keys::Resolved::always : row.is_needed) required.push_back('"' + row.name + '"');
    properties.push_back(fmt::format(R"("{}": {{{}}})", row.name, members_of(row, scenarios)));
  }
  const std::string needs = required.empty() ? "" : fmt::format(R"("required": [{}], )", fmt::join(required, ", "));
  return fmt::format(R"("type": "object", {}"properties": {{{}}}, "additionalProperties": false)", needs,
                     fmt::join(properties, ", "));
}

template <class... Rows>
std::vector<keys::Row> workload_rows(const std::string& phase, const Rows&... tables) {
  std::vector<keys::Row> rows = {{"phase", keys::words({phase}), "what a step is for"}};
  rows.front().is_needed = true;
  const auto append = [&](const std::vector<keys::Row>& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  (append(tables.rows()), ...);
  if (phase != word_of(WorkloadPhase::mixed)) return rows;
  std::erase_if(rows, [](const keys::Row& row) { return row.of_one_phase; });
  for (keys::Row& row : rows) {
    if (row.of_words) row.type = row.resolved_type = keys::words(row.type.words);
  }
  return rows;
}

// Of a scenario of given slots.
std::vector<keys::Row> pipeline_rows() {
  std::vector<keys::Row> rows = keys::top().rows();
  std::erase_if(rows, [](const keys::Row& row) {
    return row.name == "hardware_overrides" || (!row.enters_slots && row.name != "overlap");
  });
  for (keys::Row& row : rows) {
    row.in_resolved = row.name == "overlap" ? keys::Resolved::sometimes : keys::Resolved::always;
  }
  return rows;
}

std::vector<keys::Row> rows_named(const std::string& name) {
  if (name == "train") return workload_rows(name, keys::train());
  if (name == "prefill") return workload_rows(name, keys::prefill());
  if (name == "decode") return workload_rows(name, keys::decode());
  if (name == "mixed") return workload_rows(name, keys::decode(), keys::prefill());
  if (name == kServePhase) return workload_rows(name, keys::serve());
  return name == "pipeline" ? pipeline_rows() : keys::top().rows();
}

std::string members_named(const std::string& name, Scenarios scenarios) {
  if (name == "acceptance") return members_of(keys::acceptance(), scenarios);
  return object_of(rows_named(name), scenarios);
}

constexpr const char* kKeysOf = "$keys";

}  // namespace

void describe_keys(Json& json, const char* table) { json.add(kKeysOf, table); }

Definitions printed_keys() {
  Definitions definitions;
  const auto add = [&](const char* table, const std::string& about) {
    definitions.emplace_back(table, [=](Json& json) {
      if (!about.empty()) json.add("description", about);
      describe_keys(json, table);
    });
  };
  add("scenario", "The scenario with every default resolved");
  for (const char* phase : {"train", "prefill", "decode", "mixed"}) add(phase, "As it was asked, with its defaults");
  add("acceptance", "");
  return definitions;
}

std::string with_keys(std::string schema, Scenarios scenarios) {
  const std::string mark = fmt::format("\"{}\": \"", kKeysOf);
  for (std::size_t at = schema.find(mark); at != std::string::npos; at = schema.find(mark)) {
    const std::size_t name = at + mark.size(), end = schema.find('"', name);
    schema.replace(at, end + 1 - at, members_named(schema.substr(name, end - name), scenarios));
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag>(schema.c_str());
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 1);
  writer.SetFormatOptions(rapidjson::kFormatSingleLineArray);
  document.Accept(writer);
  return std::string(buffer.GetString()) + "\n";
}

}  // namespace moeline

#include "experiments/report/fields.hpp"

#include <fmt/ranges.h>

#include <cmath>

namespace moeline {
namespace {

using Types = std::vector<std::string>;

std::string schema_of(const std::string& command, const std::string& about, const Describe& keywords) {
  Json json;
  json.open().add("$schema", "http://json-schema.org/draft-04/schema#");
  json.add("title", "What moeline " + command + " prints as JSON").add("description", about);
  keywords(json);
  return json.close().text();
}

void write_number(Json& json, const std::string& key, double value, int decimals) {
  if (decimals == kAllDigits) {
    json.exact(key, value);
  } else {
    json.add(key, value, decimals == kByAmount ? (std::abs(value) < 10 ? 6 : 3) : decimals);
  }
}

void write_lists(Json& json, const std::string& key, const std::vector<std::vector<int>>& lists) {
  json.open_list(key);
  for (const std::vector<int>& each : lists) json.item(each);
  json.close_list();
}

void write_pairs(Json& json, const std::string& key, const NumberPairs& pairs, int decimals) {
  json.open_list(key);
  for (const auto& [x, y] : pairs) json.item(std::vector{x, y}, decimals);
  json.close_list();
}

std::string formatted(double value, const std::string& format) {
  if (format == "%") return percent(value);
  if (format == "+%") return signed_percent(value);
  return fmt::format(fmt::runtime(format), value);
}

void describe_type(Json& json, const char* type, bool or_null) {
  or_null ? json.add("type", Types{type, "null"}) : json.add("type", type);
}

void describe_text(Json& json, const As& as, bool or_null) {
  describe_type(json, "string", or_null);
  if (as.words.empty()) return;
  json.open_list("enum");
  for (const std::string& word : as.words) json.item(word);
  if (or_null) json.null_item();
  json.close_list();
}

void describe_number(Json& json, const char* type, const As& as, bool or_null) {
  describe_type(json, type, or_null);
  if (std::isfinite(as.least)) json.exact("minimum", as.least);
  if (std::isfinite(as.most)) json.exact("maximum", as.most);
}

void describe_pairs(Json& json, const As& as) {
  report::describe_list(json, [&](Json& pair) {
    report::describe_list(pair, [&](Json& item) { describe_number(item, "number", as, false); });
    pair.add("minItems", 2).add("maxItems", 2);
  });
}

// Whatever a YAML file has below its keys.
void describe_yaml(Json& json) {
  const auto anything = [](Json& value) {
    value.add("type", Types{"string", "number", "boolean", "array", "object", "null"});
  };
  report::describe_map(json, anything, {});
}

}  // namespace

namespace report {

void write(Json& json, const std::string& key, const Value& value, const As& as) {
  const auto write_one = [&]<class V>(const V& v) {
    if constexpr (std::is_same_v<V, NotKnown>) {
      json.null(key);
    } else if constexpr (std::is_same_v<V, bool>) {
      json.flag(key, v);
    } else if constexpr (std::is_same_v<V, double>) {
      write_number(json, key, v, as.decimals);
    } else if constexpr (std::is_same_v<V, std::vector<double>>) {
      json.add(key, v, as.decimals);
    } else if constexpr (std::is_same_v<V, std::vector<std::vector<int>>>) {
      write_lists(json, key, v);
    } else if constexpr (std::is_same_v<V, NumberPairs>) {
      write_pairs(json, key, v, as.decimals);
    } else if constexpr (!std::is_same_v<V, std::monostate>) {
      json.add(key, v);
    }
  };
  std::visit(write_one, value);
}

std::string cell(const Value& value, const As& as) {
  if (const auto* number = std::get_if<double>(&value)) return formatted(*number, as.format);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format(fmt::runtime(as.format), *whole);
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format(fmt::runtime(as.format), *text);
  if (const auto* texts = std::get_if<Types>(&value)) return fmt::format("{}", fmt::join(*texts, ", "));
  return "";
}

void describe(Json& json, Kind kind, const As& as, bool or_null) {
  switch (kind) {
    case Kind::flag:
      return describe_type(json, "boolean", or_null);
    case Kind::whole:
      return describe_number(json, "integer", as, or_null);
    case Kind::number:
      return describe_number(json, "number", as, or_null);
    case Kind::text:
      return describe_text(json, as, or_null);
    case Kind::numbers:
      return describe_list(json, [&](Json& item) { describe_number(item, "number", as, false); });
    case Kind::texts:
      return describe_list(json, [&](Json& item) { describe_text(item, as, false); });
    case Kind::lists:
      return describe_list(json, [&](Json& list) {
        describe_list(list, [&](Json& item) { describe_number(item, "integer", as, false); });
      });
    case Kind::pairs:
      return describe_pairs(json, as);
    case Kind::yaml:
      return describe_yaml(json);
  }
}

void describe_list(Json& json, const Describe& item) {
  json.add("type", "array").open("items");
  item(json);
  json.close();
}

void describe_map(Json& json, const Describe& value, const Keys& keys) {
  json.add("type", "object");
  if (keys.empty()) {
    json.open("additionalProperties");
    value(json);
    json.close();
    return;
  }
  json.open("properties");
  for (const auto& [name, about] : keys) describe_key(json, name, about, value);
  json.close().flag("additionalProperties", false);
}

void describe_key(Json& json, const std::string& key, const std::string& about, const Describe& value) {
  json.open(key);
  if (!about.empty()) json.add("description", about);
  value(json);
  json.close();
}

}  // namespace report

std::string output_schema(const std::string& command, const std::string& about, const Describe& output) {
  return schema_of(command, about, output);
}

std::string output_schema(const std::string& command, const std::string& about, const std::vector<OneOutput>& outputs,
                          const Definitions& definitions) {
  return schema_of(command, about, [&](Json& json) {
    json.open_list("oneOf");
    for (const OneOutput& each : outputs) {
      json.open();
      if (!each.about.empty()) json.add("description", each.about);
      each.describe(json);
      json.close();
    }
    json.close_list();
    if (definitions.empty()) return;
    json.open("definitions");
    for (const auto& [name, describe] : definitions) report::describe_key(json, name, "", describe);
    json.close();
  });
}

}  // namespace moeline

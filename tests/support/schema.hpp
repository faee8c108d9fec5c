// JSON documents held against the schemas that the program knows, and what a schema says of each place of a document.
#pragma once

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/pointer.h>
#include <rapidjson/schema.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiments/cli/print_schema.hpp"
#include "experiments/report/json.hpp"
#include "tests/support/json.hpp"

namespace moeline::testing {

using JsonValue = rapidjson::Value;

inline const rapidjson::Document& schema_named(const std::string& name) {
  static std::map<std::string, std::unique_ptr<rapidjson::Document>> known;
  std::unique_ptr<rapidjson::Document>& schema = known[name];
  if (schema == nullptr) {
    schema = std::make_unique<rapidjson::Document>(parsed(schema_text(name)));
  }
  return *schema;
}

/// A YAML file as the JSON that it means.
inline rapidjson::Document json_of_yaml(const std::string& yaml) {
  Json json;
  json.open().add("file", parse_yaml("test", yaml)).close();
  rapidjson::Document whole = parsed(json.text()), file;
  file.CopyFrom(whole["file"], file.GetAllocator());
  return file;
}

inline rapidjson::Pointer below(const rapidjson::Pointer& at, const std::string& key) {
  return at.Append(key.c_str(), static_cast<rapidjson::SizeType>(key.size()));
}

inline std::string text_of(const rapidjson::Pointer& pointer) {
  rapidjson::StringBuffer text;
  pointer.Stringify(text);
  return text.GetString();
}

/// A part of a schema as a schema of its own, with the definitions of the whole.
inline rapidjson::Document part_of(const rapidjson::Document& whole, const JsonValue& part) {
  rapidjson::Document alone;
  alone.CopyFrom(part, alone.GetAllocator());
  if (whole.HasMember("definitions") && !alone.HasMember("definitions")) {
    JsonValue definitions(whole["definitions"], alone.GetAllocator());
    alone.AddMember("definitions", definitions, alone.GetAllocator());
  }
  return alone;
}

/// What a schema has against a document, and where; "" if nothing. Of alternatives, what each of them has against it.
inline std::string complaint(const rapidjson::Document& schema, const JsonValue& document) {
  const rapidjson::SchemaDocument compiled(schema);
  rapidjson::SchemaValidator validator(compiled);
  if (document.Accept(validator)) return "";
  const std::string keyword = validator.GetInvalidSchemaKeyword();
  const rapidjson::Pointer place = validator.GetInvalidDocumentPointer();
  const JsonValue* broken = validator.GetInvalidSchemaPointer().Get(schema);
  const JsonValue* value = place.Get(document);
  std::string text = fmt::format("at '{}': {}", text_of(place), keyword);
  if (broken == nullptr || value == nullptr) return text;
  if (keyword != "oneOf" && keyword != "anyOf") return text + " of " + text_of(*value).substr(0, 200);
  for (const JsonValue& alternative : (*broken)[keyword.c_str()].GetArray()) {
    const std::string why = complaint(part_of(schema, alternative), *value);
    text += fmt::format("\n  {}: {}", text_of(alternative).substr(0, 60), why.empty() ? "is met" : why);
  }
  return text;
}

inline void check_by_schema(const std::string& name, const JsonValue& document) {
  CHECK_MESSAGE(complaint(schema_named(name), document).empty(),
                name << ": " << complaint(schema_named(name), document));
}

/// Behind any $ref.
inline const JsonValue& resolved(const rapidjson::Document& root, const JsonValue& schema) {
  if (!schema.HasMember("$ref")) return schema;
  const JsonValue* found = rapidjson::Pointer(schema["$ref"].GetString()).Get(root);
  REQUIRE_MESSAGE(found != nullptr, schema["$ref"].GetString());
  return resolved(root, *found);
}

inline bool is_of_type(const JsonValue& types, const JsonValue& value) {
  if (types.IsArray()) {
    return std::any_of(types.Begin(), types.End(), [&](const JsonValue& type) { return is_of_type(type, value); });
  }
  const std::string type = types.GetString();
  if (type == "object") return value.IsObject();
  if (type == "array") return value.IsArray();
  if (type == "string") return value.IsString();
  if (type == "boolean") return value.IsBool();
  if (type == "null") return value.IsNull();
  return type == "integer" ? value.IsInt64() : value.IsNumber();
}

/// Whether a value can be meant by an alternative: by its type, the keys that it needs, and words that name it.
inline bool may_be(const rapidjson::Document& root, const JsonValue& alternative, const JsonValue& value) {
  const JsonValue& schema = resolved(root, alternative);
  if (schema.HasMember("type") && !is_of_type(schema["type"], value)) return false;
  if (!value.IsObject()) return true;
  if (schema.HasMember("required")) {
    for (const JsonValue& key : schema["required"].GetArray()) {
      if (!value.HasMember(key)) return false;
    }
  }
  if (!schema.HasMember("properties")) return true;
  for (const auto& [key, property] : schema["properties"].GetObject()) {
    if (!value.HasMember(key) || !property.HasMember("enum") || !value[key].IsString()) continue;
    const auto words = property["enum"].GetArray();
    if (std::find(words.begin(), words.end(), value[key]) == words.end()) return false;
  }
  return true;
}

/// The schema of a value behind references and alternatives.
inline const JsonValue& schema_of(const rapidjson::Document& root, const JsonValue& written, const JsonValue& value) {
  const JsonValue& schema = resolved(root, written);
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (!schema.HasMember(keyword) || schema.HasMember("properties")) continue;
    for (const JsonValue& alternative : schema[keyword].GetArray()) {
      if (may_be(root, alternative, value)) return schema_of(root, alternative, value);
    }
  }
  return schema;
}

/// The schema of a key's value as it is written there; null where none is.
inline const JsonValue* schema_of_key(const JsonValue& schema, const std::string& key) {
  if (schema.HasMember("properties") && schema["properties"].HasMember(key.c_str())) {
    return &schema["properties"][key.c_str()];
  }
  const bool named = schema.HasMember("additionalProperties") && schema["additionalProperties"].IsObject();
  return named ? &schema["additionalProperties"] : nullptr;
}

/// A value of a document, and what its schema says of it.
struct SchemaPlace {
  rapidjson::Pointer at;
  const JsonValue* value;
  const JsonValue* schema;
};

/// All values of a document that its schema describes, the whole first.
inline void add_places(const rapidjson::Document& root, const JsonValue& written, const JsonValue& value,
                       const rapidjson::Pointer& at, std::vector<SchemaPlace>& places) {
  const JsonValue& schema = schema_of(root, written, value);
  places.push_back({at, &value, &schema});
  if (value.IsObject()) {
    for (const auto& [key, inner] : value.GetObject()) {
      const JsonValue* next = schema_of_key(schema, key.GetString());
      if (next != nullptr) add_places(root, *next, inner, below(at, key.GetString()), places);
    }
  } else if (value.IsArray() && schema.HasMember("items")) {
    for (rapidjson::SizeType i = 0; i < value.Size(); ++i) {
      add_places(root, schema["items"], value[i], at.Append(i), places);
    }
  }
}

inline std::vector<SchemaPlace> places_of(const std::string& schema, const JsonValue& document) {
  std::vector<SchemaPlace> places;
  add_places(schema_named(schema), schema_named(schema), document, rapidjson::Pointer(), places);
  return places;
}

/// Every schema inside of a schema, itself among them. `at`: where it stands, for messages.
template <class Visit>
void for_each_schema(const JsonValue& schema, const std::string& at, Visit visit) {
  visit(schema, at);
  for (const char* named : {"properties", "definitions"}) {
    if (!schema.HasMember(named)) continue;
    for (const auto& [key, inner] : schema[named].GetObject()) {
      for_each_schema(inner, at + "/" + named + "/" + key.GetString(), visit);
    }
  }
  for (const char* single : {"additionalProperties", "items"}) {
    if (schema.HasMember(single) && schema[single].IsObject())
      for_each_schema(schema[single], at + "/" + single, visit);
  }
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (!schema.HasMember(keyword)) continue;
    for (const JsonValue& inner : schema[keyword].GetArray()) for_each_schema(inner, at + "/" + keyword, visit);
  }
}

}  // namespace moeline::testing

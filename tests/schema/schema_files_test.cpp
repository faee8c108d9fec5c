// The schemas of experiments/schema are whole: a validator reads them, and they say what everything is.
#include <doctest/doctest.h>

#include "tests/support/schema.hpp"

TEST_SUITE("schema/schema_files") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("every schema has a title and a description and refuses a document of another kind") {
  for (const std::string& name : schema_names()) {
    CAPTURE(name);
    const rapidjson::Document& schema = schema_named(name);
    CHECK(schema.HasMember("title"));
    CHECK(schema.HasMember("description"));
    CHECK(complaint(schema, parsed("{\"zzzzzzzz\": 1}")) != "");
    CHECK(complaint(schema, parsed("[]")) != "");
  }
}

TEST_CASE("every key of a schema says what it is") {
  for (const std::string& name : schema_names()) {
    const rapidjson::Document& root = schema_named(name);
    for_each_schema(root, name, [&](const JsonValue& schema, const std::string& at) {
      if (!schema.HasMember("properties")) return;
      for (const auto& member : schema["properties"].GetObject()) {
        const JsonValue& property = member.value;
        const JsonValue& described = property.HasMember("description") ? property : resolved(root, property);
        const bool says = described.HasMember("description") && described["description"].GetStringLength() > 1;
        CHECK_MESSAGE(says, at << " does not say what " << member.name.GetString() << " is");
      }
    });
  }
}

TEST_CASE("every mapping of fixed keys refuses others, and every value has a type") {
  for (const std::string& name : schema_names()) {
    for_each_schema(schema_named(name), name, [](const JsonValue& schema, const std::string& at) {
      CAPTURE(at);
      if (schema.HasMember("properties")) CHECK(schema.HasMember("additionalProperties"));
      const bool typed = std::any_of(schema.MemberBegin(), schema.MemberEnd(), [](const auto& member) {
        const std::string keyword = member.name.GetString();
        return keyword == "type" || keyword == "enum" || keyword == "$ref" || keyword == "oneOf" ||
               keyword == "anyOf" || keyword == "required";
      });
      CHECK(typed);
    });
  }
}

TEST_CASE("every default is a value that its own schema takes") {
  int defaults = 0;
  for (const std::string& name : schema_names()) {
    const rapidjson::Document& root = schema_named(name);
    for_each_schema(root, name, [&](const JsonValue& schema, const std::string& at) {
      if (!schema.HasMember("default")) return;
      ++defaults;
      CHECK_MESSAGE(complaint(part_of(root, schema), schema["default"]).empty(),
                    at << " has a default of another kind");
    });
  }
  CHECK(defaults > 50);
}

TEST_CASE("the page of the schemas names each of them") {
  const std::string page = content_of(source("experiments/schema/README.md"));
  for (const std::string& name : schema_names()) {
    const std::string suffix = "_output";
    const bool printed = name.ends_with(suffix);
    const std::string shown = printed ? name.substr(0, name.size() - suffix.size()) : "`" + name + ".json`";
    CHECK_MESSAGE(page.find(shown) != std::string::npos, "the page does not have " << name);
  }
}

TEST_CASE("a complaint names the place, and of alternatives what each of them lacks") {
  const rapidjson::Document study = json_of_yaml("{schema: 1, scenario: a.yaml, axes: {seed: {from: 1, to: 2}}}");
  const std::string says = complaint(schema_named("study"), study);
  CHECK(says.find("/axes/seed") != std::string::npos);
  CHECK(says.find("array") != std::string::npos);
  const rapidjson::Document wrong = json_of_yaml("{schema: 2, scenario: a.yaml, axes: {seed: [1]}}");
  CHECK(complaint(schema_named("study"), wrong).find("at '/schema': maximum") != std::string::npos);
}

}  // TEST_SUITE("schema/schema_files")

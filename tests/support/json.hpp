// JSON that the program printed or wrote.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "tests/support/cli.hpp"

namespace moeline::testing {

inline rapidjson::Document parsed(const std::string& text) {
  rapidjson::Document document;
  REQUIRE_FALSE(document.Parse(text.c_str()).HasParseError());
  return document;
}

inline std::string text_of(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

/// What a call prints that is expected to succeed.
inline rapidjson::Document json_of(const Arguments& arguments) {
  const Outcome outcome = run_moeline(arguments);
  CAPTURE(joined(arguments));
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return parsed(outcome.out);
}

/// The same of a call that says nothing of its format.
inline rapidjson::Document in_json(Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return json_of(arguments);
}

}  // namespace moeline::testing

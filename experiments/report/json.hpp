// JSON objects on stdout and in files, by RapidJSON. Texts may be anything: what is no UTF-8 becomes U+FFFD.
#pragma once

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace moeline {

class Json {
 public:
  Json() { writer_.SetIndent(' ', 1); }
  Json& open() {
    writer_.StartObject();
    return *this;
  }
  Json& open(std::string_view key) {
    name(key);
    return open();
  }
  Json& close() {
    writer_.EndObject();
    return *this;
  }
  Json& open_list(std::string_view key) {
    name(key);
    writer_.StartArray();
    return *this;
  }
  Json& close_list() {
    writer_.EndArray();
    return *this;
  }

  Json& add(std::string_view key, std::string_view value);
  Json& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  Json& add(std::string_view key, std::int64_t value) {
    name(key);
    writer_.Int64(value);
    return *this;
  }
  Json& add(std::string_view key, int value) { return add(key, std::int64_t{value}); }
  Json& add(std::string_view key, std::uint32_t value) { return add(key, std::int64_t{value}); }
  Json& add(std::string_view key, std::size_t value) { return add(key, static_cast<std::int64_t>(value)); }
  Json& flag(std::string_view key, bool value) {
    name(key);
    writer_.Bool(value);
    return *this;
  }
  Json& null(std::string_view key) {
    name(key);
    writer_.Null();
    return *this;
  }
  /// Rounded to `decimals`.
  Json& add(std::string_view key, double value, int decimals = 3);
  /// With as many digits as it has.
  Json& exact(std::string_view key, double value);
  Json& exact(std::string_view key, const std::vector<double>& values);
  Json& add(std::string_view key, const std::vector<int>& values);
  Json& add(std::string_view key, const std::vector<std::string>& values);
  Json& add(std::string_view key, const std::vector<double>& values, int decimals) {
    name(key);
    return item(values, decimals);
  }
  /// Mappings, lists and values of a YAML file; what reads as a number, true, false or null is one, unless quoted.
  Json& add(std::string_view key, const YamlNode& value);

  /// An element of a list: a text, null, numbers on one line.
  Json& item(std::string_view value) {
    string(value);
    return *this;
  }
  Json& null_item() {
    writer_.Null();
    return *this;
  }
  Json& number_item(double value, int decimals) {
    number(value, decimals);
    return *this;
  }
  Json& item(const std::vector<int>& values);
  Json& item(const std::vector<double>& values, int decimals);

  [[nodiscard]] std::string text() const { return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n"; }

 private:
  void string(std::string_view value);
  void raw_number(const std::string& text);
  void number(double value, int decimals);
  void node(const YamlNode& node);
  void word(const YamlNode& node);
  template <class Write>
  void on_one_line(Write write) {
    writer_.SetFormatOptions(rapidjson::kFormatSingleLineArray);
    writer_.StartArray();
    write();
    writer_.EndArray();
    writer_.SetFormatOptions(rapidjson::kFormatDefault);
  }
  void name(std::string_view key) { writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size())); }

  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace moeline

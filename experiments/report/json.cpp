#include "experiments/report/json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"

namespace moeline {

Json& Json::add(std::string_view key, std::string_view value) {
  name(key);
  string(value);
  return *this;
}

Json& Json::add(std::string_view key, double value, int decimals) {
  name(key);
  number(value, decimals);
  return *this;
}

Json& Json::exact(std::string_view key, double value) {
  name(key);
  raw_number(shortest(value));
  return *this;
}

Json& Json::exact(std::string_view key, const std::vector<double>& values) {
  name(key);
  on_one_line([&] {
    for (const double value : values) raw_number(shortest(value));
  });
  return *this;
}

Json& Json::add(std::string_view key, const std::vector<int>& values) {
  open_list(key);
  for (const int value : values) writer_.Int(value);
  return close_list();
}

Json& Json::add(std::string_view key, const std::vector<std::string>& values) {
  open_list(key);
  for (const std::string& value : values) string(value);
  return close_list();
}

Json& Json::add(std::string_view key, const YamlNode& value) {
  name(key);
  node(value);
  return *this;
}

Json& Json::item(const std::vector<int>& values) {
  on_one_line([&] {
    for (const int value : values) writer_.Int(value);
  });
  return *this;
}

Json& Json::item(const std::vector<double>& values, int decimals) {
  on_one_line([&] {
    for (const double value : values) number(value, decimals);
  });
  return *this;
}

void Json::raw_number(const std::string& text) { writer_.RawValue(text.data(), text.size(), rapidjson::kNumberType); }

void Json::number(double value, int decimals) { raw_number(fmt::format("{:.{}f}", value, decimals)); }

void Json::node(const YamlNode& node) {
  if (node.is_map()) {
    writer_.StartObject();
    for (const YamlNode& entry : node.items) add(entry.key, entry);
    writer_.EndObject();
  } else if (node.is_list()) {
    writer_.StartArray();
    for (const YamlNode& item : node.items) this->node(item);
    writer_.EndArray();
  } else {
    word(node);
  }
}

void Json::word(const YamlNode& node) {
  const std::string& text = node.word;
  std::int64_t whole = 0;
  double number = 0;
  if (node.is_nothing()) {
    writer_.Null();
  } else if (!node.quoted && (text == "true" || text == "false")) {
    writer_.Bool(text == "true");
  } else if (read_number(node, whole)) {
    writer_.Int64(whole);
  } else if (read_number(node, number) && std::isfinite(number)) {
    raw_number(shortest(number));
  } else {
    string(text);
  }
}

void Json::string(std::string_view value) {
  const std::string valid = as_utf8(value);
  writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

}  // namespace moeline

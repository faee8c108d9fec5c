#include "experiments/cli/json.hpp"

#include <fmt/format.h>

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

void Json::number(double value, int decimals) {
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  writer_.RawValue(text.data(), text.size(), rapidjson::kNumberType);
}

void Json::string(std::string_view value) {
  const std::string valid = as_utf8(value);
  writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

}  // namespace moeline

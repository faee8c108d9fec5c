#include "experiments/cli/json.hpp"

#include <fmt/format.h>

namespace moeline {

Json& Json::add(std::string_view key, std::string_view value) {
  name(key);
  writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  return *this;
}

Json& Json::add(std::string_view key, double value, int decimals) {
  name(key);
  const std::string number = fmt::format("{:.{}f}", value, decimals);
  writer_.RawValue(number.data(), number.size(), rapidjson::kNumberType);
  return *this;
}

Json& Json::add(std::string_view key, const std::vector<int>& values) {
  open_list(key);
  for (const int value : values) writer_.Int(value);
  return close_list();
}

Json& Json::add(std::string_view key, const std::vector<std::string>& values) {
  open_list(key);
  for (const std::string& value : values) {
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  return close_list();
}

}  // namespace moeline

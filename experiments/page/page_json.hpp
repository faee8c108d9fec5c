// Compact JSON for a script element of a page.
#pragma once

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace moeline {

/// A "<" is written as an escape: the script would end at the first "</script" of any text. What is no UTF-8 becomes
/// U+FFFD, what is no number null.
class PageJson {
 public:
  void key(std::string_view name) { writer_.Key(name.data(), size_of(name)); }
  void open() { writer_.StartObject(); }
  void close() { writer_.EndObject(); }
  void text(std::string_view value) {
    const std::string valid = as_utf8(value);
    writer_.String(valid.data(), size_of(valid));
  }
  void number(double value) {
    constexpr int kDigits = 9;  // as in the table's CSV
    const std::string written = std::isfinite(value) ? fmt::format("{:.{}g}", value, kDigits) : "null";
    writer_.RawValue(written.data(), written.size(), rapidjson::kNumberType);
  }
  void whole(std::int64_t value) { writer_.Int64(value); }
  void entry(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }
  template <class List, class Write>
  void list(std::string_view name, const List& values, Write write) {
    key(name);
    writer_.StartArray();
    for (const auto& value : values) write(value);
    writer_.EndArray();
  }
  void open_list() { writer_.StartArray(); }
  void close_list() { writer_.EndArray(); }
  template <class List>
  void texts(std::string_view name, const List& values) {
    list(name, values, [this](const std::string& value) { text(value); });
  }
  /// Of whole numbers.
  template <class List>
  void wholes(std::string_view name, const List& values) {
    list(name, values, [this](auto value) { whole(static_cast<std::int64_t>(value)); });
  }
  template <class List>
  void numbers(std::string_view name, const List& values) {
    list(name, values, [this](auto value) { number(static_cast<double>(value)); });
  }
  void flag(std::string_view name, bool value) {
    key(name);
    writer_.Bool(value);
  }
  [[nodiscard]] std::string for_script() const {
    std::string escaped;
    for (const char c : std::string_view(buffer_.GetString(), buffer_.GetSize())) {
      c == '<' ? escaped += "\\u003c" : escaped += c;
    }
    return escaped;
  }

 private:
  static rapidjson::SizeType size_of(std::string_view value) { return static_cast<rapidjson::SizeType>(value.size()); }

  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace moeline

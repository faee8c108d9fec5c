#include "base/text.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <algorithm>

namespace moeline {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character in front; 0 where there is none (RFC 3629: no overlong forms, surrogates, or beyond U+10FFFF).
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xC2 && lead <= 0xDF ? 2 : lead >= 0xE0 && lead <= 0xEF ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool no_character = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return overlong || no_character ? 0 : size;
}

// U+0000 to U+001F, U+007F to U+009F: terminals obey the latter, too.
bool is_control(std::string_view one) {
  const auto first = static_cast<unsigned char>(one[0]);
  if (one.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(one[1]) < 0xA0;
}

// The character in front, taken away from the text.
std::string_view take_character(std::string_view& text) {
  const std::size_t size = character(text);
  const std::string_view one = size == 0 ? kReplacement : text.substr(0, size);
  text.remove_prefix(std::max<std::size_t>(1, size));
  return one;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) valid += take_character(text);
  return valid;
}

std::size_t readable_bytes(std::string_view text) {
  std::size_t readable = 0;
  while (readable < text.size()) {
    const std::string_view rest = text.substr(readable);
    const std::size_t size = character(rest);
    const bool ends_line = rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r';
    if (size == 0 || (is_control(rest.substr(0, size)) && !ends_line)) break;
    readable += size;
  }
  return readable;
}

std::string one_line(std::string_view text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  std::string line;
  std::size_t shortened = 0;  // bytes of the line that leave room for kCut
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most - kCut.size()) shortened = line.size();
    if (count == most) return line.substr(0, shortened).append(kCut);
    const std::string_view one = take_character(text);
    line += is_control(one) ? "?" : one;
  }
  return line;
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string json_text(std::string_view text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  const std::string valid = as_utf8(text);
  writer.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace moeline

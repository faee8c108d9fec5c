// Text made fit for where it goes: terminals, JSON, CSV, SQL.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace moeline {

/// The same text as valid UTF-8: each byte that belongs to no character becomes U+FFFD.
[[nodiscard]] std::string as_utf8(std::string_view text);

/// How many bytes stand before the first that belongs to no character of UTF-8, or is a control character other than a
/// tab or a line's end; all of them where there is none.
[[nodiscard]] std::size_t readable_bytes(std::string_view text);

/// Fit for one line of a terminal: valid UTF-8 without control characters ('?' stands for each), and at most `most`
/// characters; a longer text ends in "...". REQUIRES: most >= 3.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t most = 80);

/// In double quotes, those in it doubled: as CSV and SQL write it.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The number that the whole text is, written in decimal; nothing where it is none, or one that the type does not hold.
template <class Number>
[[nodiscard]] std::optional<Number> as_number(std::string_view text) {
  Number number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failed] = std::from_chars(text.data(), last, number);
  return failed == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

/// In quotes as JSON writes it. What is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace moeline

// The numbers of a trace, from their text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace moeline {

/// 95 years: a start plus a duration minus another start always fits an int64.
inline constexpr std::int64_t kLargestTraceTimeNs = 3'000'000'000'000'000'000;

/// Nanoseconds in a decimal number of microseconds ("17", "-0.25", "1.5e3"), without passing through a double, which
/// holds no more than a quarter of a microsecond of today's epoch. Digits beyond the nanosecond round to the nearest.
/// Nothing when the text is not such a number, or beyond kLargestTraceTimeNs either way.
[[nodiscard]] std::optional<std::int64_t> ns_from_us(std::string_view text);

/// Nothing when the text is not a whole number, or out of the type's range.
template <class Integer>
[[nodiscard]] std::optional<Integer> whole_number(std::string_view text) {
  Integer value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && parsed == end ? std::optional(value) : std::nullopt;
}

}  // namespace moeline

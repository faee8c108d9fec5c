#include "trace/trace_numbers.hpp"

#include <string>

namespace moeline {
namespace {

bool take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

// The "e-3" of a number, and nothing behind it. No exponent at all is 0.
std::optional<int> exponent_of(std::string_view text) {
  if (text.empty()) return 0;
  if (!take(text, "eE")) return std::nullopt;
  if (take(text, "+") && text.starts_with('-')) return std::nullopt;
  return whole_number<int>(text);
}

// The number whose digits are `digits`, with its point behind the first `whole` of them (which may be any number).
std::optional<std::int64_t> rounded(std::string_view digits, std::int64_t whole) {
  const std::size_t zeros = digits.find_first_not_of('0');
  if (zeros == std::string_view::npos) return 0;
  digits.remove_prefix(zeros);
  whole -= static_cast<std::int64_t>(zeros);
  const auto digit = [&](std::int64_t i) {
    return i >= 0 && i < static_cast<std::int64_t>(digits.size()) ? digits[static_cast<std::size_t>(i)] - '0' : 0;
  };
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < whole; ++i) {
    if (value > kLargestTraceTimeNs / 10) return std::nullopt;  // soon, as the first digit is not 0
    value = value * 10 + digit(i);
  }
  if (digit(whole) >= 5) ++value;
  return value <= kLargestTraceTimeNs ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> ns_from_us(std::string_view text) {
  const bool negative = take(text, "-");
  const std::string_view whole = take_digits(text);
  const bool point = take(text, ".");
  const std::string_view fraction = point ? take_digits(text) : std::string_view();
  const std::optional<int> exponent = exponent_of(text);
  if (whole.empty() || (point && fraction.empty()) || !exponent) return std::nullopt;

  constexpr std::int64_t kDigitsOfNs = 3;
  const std::int64_t digits_before_point = static_cast<std::int64_t>(whole.size()) + *exponent + kDigitsOfNs;
  const std::optional<std::int64_t> ns = rounded(std::string(whole).append(fraction), digits_before_point);
  if (!ns) return std::nullopt;
  return negative ? -*ns : *ns;
}

}  // namespace moeline

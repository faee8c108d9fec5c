#include "experiments/decide/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/spec.hpp"
#include "base/text.hpp"

namespace moeline {
namespace {

constexpr std::string_view kTo = "..";

bool is_whole(double value) { return value == std::floor(value) && std::abs(value) < 1e15; }

[[noreturn]] void refuse_axis(std::string_view text, const std::string& why) {
  throw SpecError(fmt::format("--along: '{}' {}", text, why));
}

double number_in(std::string_view axis, std::string_view text) {
  if (const auto number = as_number<double>(text); number && std::isfinite(*number)) return *number;
  refuse_axis(axis, fmt::format("needs two numbers, KEY=A..B, and '{}' is none", text));
}

std::vector<double> doubled(double first, double last) {
  std::vector<double> values;
  for (double value = first; value < last; value *= 2) values.push_back(value);
  values.push_back(last);
  return values;
}

std::vector<double> evenly(double first, double last, bool whole) {
  constexpr int kParts = 8;
  std::vector<double> values;
  for (int i = 0; i <= kParts; ++i) {
    const double value = first + (last - first) * i / kParts;
    values.push_back(whole ? std::round(value) : as_number<double>(fmt::format("{:.6g}", value)).value());
  }
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

DecideAxis range_of(std::string_view text, std::string key, std::string_view range) {
  constexpr double kFew = 4;
  const double first = number_in(text, range.substr(0, range.find(kTo)));
  const double last = number_in(text, range.substr(range.find(kTo) + kTo.size()));
  if (first >= last) refuse_axis(text, "must ascend");
  if (!std::isfinite(last - first)) refuse_axis(text, "is too wide");
  const bool whole = is_whole(first) && is_whole(last);
  DecideAxis axis{.key = std::move(key), .kind = whole ? DecideAxis::Kind::whole : DecideAxis::Kind::real};
  const bool doubles = whole && first > 0 && last >= kFew * first;
  for (const double value : doubles ? doubled(first, last) : evenly(first, last, whole)) {
    axis.values.push_back(shortest(value));
  }
  return axis;
}

DecideAxis::Kind kind_of(std::string_view text, const std::vector<std::string>& values) {
  std::vector<double> numbers;
  for (const std::string& value : values) {
    const auto number = as_number<double>(value);
    if (!number) return DecideAxis::Kind::words;
    if (!std::isfinite(*number)) refuse_axis(text, "has a number that is none");
    numbers.push_back(*number);
  }
  const bool ascend = std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
  if (!ascend) return DecideAxis::Kind::words;
  return std::all_of(numbers.begin(), numbers.end(), is_whole) ? DecideAxis::Kind::whole : DecideAxis::Kind::real;
}

DecideAxis list_of(std::string_view text, std::string key, std::string_view list) {
  const Spec spec = Spec::parse("--along", fmt::format("values: {}", list));
  DecideAxis axis{.key = std::move(key), .values = spec.texts("values")};
  std::vector<std::string> sorted = axis.values;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) refuse_axis(text, "lists no values");
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) refuse_axis(text, "lists a value twice");
  axis.kind = kind_of(text, axis.values);
  return axis;
}

}  // namespace

DecideAxis read_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse_axis(text, "is no KEY=A..B or KEY=[a, b, c]");
  std::string key(text.substr(0, equals));
  const std::string_view values = text.substr(equals + 1);
  if (values.starts_with('[')) return list_of(text, std::move(key), values);
  if (values.find(kTo) != std::string_view::npos) return range_of(text, std::move(key), values);
  refuse_axis(text, "is no KEY=A..B or KEY=[a, b, c]");
}

std::optional<double> middle(const DecideAxis& axis, double low, double high) {
  constexpr double kNear = 0.01;
  const double half = (low + high) / 2;
  switch (axis.kind) {
    case DecideAxis::Kind::words:
      return std::nullopt;
    case DecideAxis::Kind::whole:
      return high - low < 2 ? std::nullopt : std::optional(std::floor(half));
    case DecideAxis::Kind::real:
      break;
  }
  return high - low <= kNear * std::max(std::abs(low), std::abs(high)) ? std::nullopt : std::optional(half);
}

}  // namespace moeline

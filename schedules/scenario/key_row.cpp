#include "schedules/scenario/key_row.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moeline::keys {
namespace {

std::string quoted(const std::vector<std::string>& words) {
  return fmt::format("[\"{}\"]", fmt::join(words, "\", \""));
}

}  // namespace

int Row::integer(const Spec& spec) const {
  return spec.integer(name, static_cast<int>(type.least), static_cast<int>(type.most));
}
std::vector<int> Row::integers(const Spec& spec) const {
  return spec.integers(name, static_cast<int>(type.least), static_cast<int>(type.most));
}
std::vector<double> Row::reals(const Spec& spec) const { return spec.numbers(name, type.least, type.most); }

Type whole(int least, int most) {
  return {fmt::format(R"("type": "integer", "minimum": {}, "maximum": {})", least, most), 1.0 * least, 1.0 * most};
}
Type number(double least, double most) {
  return {fmt::format(R"("type": "number", "minimum": {:.15g}, "maximum": {:.15g})", least, most), least, most};
}
Type flag() { return {R"("type": "boolean")"}; }
Type text() { return {R"("type": "string", "minLength": 1)"}; }
Type words(std::vector<std::string> words) {
  std::string schema = R"("type": "string", "enum": )" + quoted(words);
  return {std::move(schema), 0, 0, std::move(words)};
}
Type list_of(const Type& items) {
  return {fmt::format(R"("type": "array", "items": {{{}}}, "minItems": 1)", items.schema), items.least, items.most};
}
Type some_of(const std::vector<std::string>& words_of_it) {
  return {list_of(words(words_of_it)).schema + R"(, "uniqueItems": true)"};
}
Type either(const Type& one, const Type& other) {
  const Type& bounded = one.words.empty() ? one : other;
  return {fmt::format(R"("anyOf": [{{{}}}, {{{}}}])", one.schema, other.schema), bounded.least, bounded.most,
          one.words};
}

std::string as_json(const Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<int>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.15g}", *real);
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && !text->empty() ? "\"" + *text + "\"" : "";
}

}  // namespace moeline::keys

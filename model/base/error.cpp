#include "base/error.hpp"

#include <fmt/format.h>

namespace moeline {
namespace {

std::string place_of(std::string_view file, int line) {
  return line > 0 ? fmt::format("{}:{}: ", file, line) : fmt::format("{}: ", file);
}

}  // namespace

SpecError::SpecError(std::string_view file, int line, std::string_view message)
    : std::runtime_error(place_of(file, line).append(message)),
      file_(file),
      line_(line),
      place_(place_of(file, line).size()) {}

SpecError SpecError::of(std::string key) && {
  key_ = std::move(key);
  return std::move(*this);
}

std::string expect_name(std::string_view kind, std::string_view name, std::span<const std::string> candidates) {
  if (std::optional<std::string> known = known_name(name, candidates)) return *std::move(known);
  throw UnknownName(unknown_name(kind, name, candidates));
}

std::string shortest(double value) { return fmt::format("{}", value); }

void check_failed(const char* condition, const char* file, int line, const std::string& values) {
  throw std::logic_error(fmt::format("internal error at {}:{}: {} does not hold ({})", file, line, condition, values));
}

}  // namespace moeline

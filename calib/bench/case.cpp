#include "case.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace moeline::bench {
namespace {

auto find(const Case& c, std::string_view name) {
  return std::find_if(c.parameters.begin(), c.parameters.end(), [&](const Parameter& p) { return p.name == name; });
}

}  // namespace

Case& Case::with(std::string name, std::int64_t value) { return with(std::move(name), std::to_string(value)); }

Case& Case::with(std::string name, std::string value) {
  parameters.push_back({std::move(name), std::move(value)});
  return *this;
}

bool Case::has(std::string_view name) const { return find(*this, name) != parameters.end(); }

const std::string& Case::text(std::string_view name) const {
  const auto found = find(*this, name);
  if (found == parameters.end())
    throw std::out_of_range("no parameter " + std::string(name) + " in " + to_string(*this));
  return found->value;
}

std::int64_t Case::number(std::string_view name) const { return std::stoll(text(name)); }

std::string to_string(const Case& c) {
  std::string text;
  for (const auto& [name, value] : c.parameters) text += (text.empty() ? "" : ";") + name + "=" + value;
  return text;
}

}  // namespace moeline::bench

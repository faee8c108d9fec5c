// Lists of names in a scenario, each of which switches something on.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "base/names.hpp"
#include "base/spec.hpp"

namespace moeline {

/// By the names that a list may hold.
template <class Flags>
using FlagsByName = std::map<std::string, bool Flags::*>;

/// Those that stand in the list at `key`, where each is a `what`. Throws SpecError for an empty list, a name that is
/// not known, or that stands twice.
template <class Flags>
[[nodiscard]] Flags read_flags(const Spec& spec, const std::string& key, const char* what,
                               const FlagsByName<Flags>& by_name) {
  const std::vector<std::string> listed = spec.texts(key);
  if (listed.empty()) throw spec.error(key, fmt::format("lists no {}s", what));
  std::vector<std::string> known;
  for (const auto& [name, flag] : by_name) known.push_back(name);
  Flags flags;
  for (const std::string& each : listed) {
    const std::string name = at_key(spec, key, [&] { return expect_name(what, each, known); });
    bool& flag = flags.*by_name.at(name);
    if (flag) throw spec.error(key, fmt::format("lists {} twice", name));
    flag = true;
  }
  return flags;
}

/// Those that are switched on.
template <class Flags>
[[nodiscard]] std::vector<std::string> names_of(const Flags& flags, const FlagsByName<Flags>& by_name) {
  std::vector<std::string> names;
  for (const auto& [name, flag] : by_name) {
    if (flags.*flag) names.push_back(name);
  }
  return names;
}

}  // namespace moeline

// Lists of names in a scenario, each of which switches something on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/spec.hpp"
#include "moe/graph_parts.hpp"
#include "moe/training.hpp"

namespace moeline {

/// By the names that a list may hold, which are Megatron's. There are those of RecomputedModules, OffloadedModules and
/// GraphParts.
template <class Flags>
using FlagsByName = std::map<std::string, bool Flags::*>;
template <class Flags>
[[nodiscard]] const FlagsByName<Flags>& flags_by_name();
template <>
const FlagsByName<RecomputedModules>& flags_by_name();
template <>
const FlagsByName<OffloadedModules>& flags_by_name();
template <>
const FlagsByName<GraphParts>& flags_by_name();

template <class Flags>
[[nodiscard]] std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& [name, flag] : flags_by_name<Flags>()) names.push_back(name);
  return names;
}

/// Those that are switched on.
template <class Flags>
[[nodiscard]] std::vector<std::string> names_of(const Flags& flags) {
  std::vector<std::string> names;
  for (const auto& [name, flag] : flags_by_name<Flags>()) {
    if (flags.*flag) names.push_back(name);
  }
  return names;
}

/// The names that stand in the list at `key`, where each is a `what`. Throws SpecError for an empty list, a name that
/// is not known, or that stands twice.
[[nodiscard]] std::vector<std::string> read_names(const Spec& spec, const std::string& key, const char* what,
                                                  const std::vector<std::string>& known);
template <class Flags>
[[nodiscard]] Flags read_flags(const Spec& spec, const std::string& key, const char* what) {
  Flags flags;
  for (const std::string& name : read_names(spec, key, what, all_names<Flags>())) {
    flags.*flags_by_name<Flags>().at(name) = true;
  }
  return flags;
}

}  // namespace moeline

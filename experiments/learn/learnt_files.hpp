// The files that a trace becomes: a machine with a learnt kernel set, and the scenario of its step on it.
#pragma once

#include <string>

#include "experiments/learn/learn.hpp"

namespace moeline {

/// What a learnt profile is called in its folder.
inline constexpr const char* kMachineFile = "machine.yaml";

/// A name that the machine, which may be a learnt one itself, has not: "learnt-2026-11", "learnt-2026-11-2".
[[nodiscard]] std::string new_set_name(const std::string& machine, const std::string& wanted);

/// The profile. `month`: its kernel set's date.
[[nodiscard]] std::string machine_yaml(const Learning& learning, const std::string& month);

/// The same settings on that machine, which `machine` names.
[[nodiscard]] Settings on_learnt_machine(Settings settings, const std::string& machine, const Learning& learning);

/// The comment above a learnt scenario.
[[nodiscard]] std::string title_of(const Learning& learning);

}  // namespace moeline

// What the schemas of scenarios say of their keys, by the table that the program reads scenarios by.
#pragma once

#include <string>

namespace moeline {

/// Whether a schema is of what is read, or of what a command prints: scenarios with every default resolved.
enum class Scenarios { read, printed };

/// A schema with what the table of a scenario's keys (schedules/scenario/keys.cpp) says in the place of each
/// "$keys": "NAME".
[[nodiscard]] std::string with_keys(std::string schema, Scenarios scenarios);

}  // namespace moeline

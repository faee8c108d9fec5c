// A scenario's keys: as JSON that `simulate` takes again, and in the schemas of scenarios.
#pragma once

#include <string>

#include "experiments/report/fields.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

/// With every default resolved, under the key "scenario".
void add_scenario(Json& json, const Setup& setup);
/// Of a pipeline of given slots: what enters, and no more.
void add_pipeline_scenario(Json& json, const Scenario& scenario);

/// The same by itself, as text that `simulate` takes.
[[nodiscard]] std::string scenario_text(const Setup& setup);

// What the schemas of scenarios say of their keys, by the table that the program reads scenarios by.

/// Whether a schema is of what is read, or of what a command prints: scenarios with every default resolved.
enum class Scenarios { read, printed };

/// Writes "$keys": the mark in whose place with_keys() puts the keys of that table.
void describe_keys(Json& json, const char* table);
/// The definitions that these tables refer to, for schemas of outputs.
[[nodiscard]] Definitions printed_keys();
/// A schema with what the tables of a scenario's keys (schedules/scenario/keys.cpp, and of requests
/// experiments/serve/serve_keys.cpp) say in the place of each "$keys": "NAME".
[[nodiscard]] std::string with_keys(std::string schema, Scenarios scenarios);

}  // namespace moeline

// moeline --print-schema: what inputs and outputs look like, for editors and other programs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace moeline {

/// One of experiments/schema by its name, with the definitions of metrics that it refers to.
[[nodiscard]] std::string schema_text(const std::string& name);

/// Adds the option to the program. With a name it prints that JSON Schema, else one object of all of them by name
/// (experiments/schema); then parsing ends as it does for --help, with a CLI::Success that has the text.
void add_print_schema(CLI::App& app);

}  // namespace moeline

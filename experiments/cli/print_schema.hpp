// moeline --print-schema: what inputs and outputs look like, for editors and other programs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace moeline {

/// Those of the files of experiments/schema, and of outputs that commands describe themselves; sorted.
[[nodiscard]] std::vector<std::string> schema_names();
/// One of these, whole: with what the tables of metrics and of scenario keys say where a file refers to them.
[[nodiscard]] std::string schema_text(const std::string& name);

/// Adds the option to the program. With a name it prints that JSON Schema, else one object of all of them by name; then
/// parsing ends as it does for --help, with a CLI::Success that has the text.
void add_print_schema(CLI::App& app);

}  // namespace moeline

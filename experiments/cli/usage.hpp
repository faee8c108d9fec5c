// What was wrong with a command line, in the words that were typed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace moeline {

/// Of a command that there is not: its name, and the nearest one; else "". CLI11 says that a command is missing, or
/// prints the program's help.
[[nodiscard]] std::string unknown_command(const CLI::App& app);

/// One line for what `error` refused after parsing with `app`: the first argument that nothing takes, as it was typed,
/// and the nearest that there is; a value that is missing; else what CLI11 says.
[[nodiscard]] std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace moeline

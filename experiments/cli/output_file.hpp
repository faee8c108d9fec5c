// Files that a command writes because an option names them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace moeline {

/// Throws CLI::ValidationError where the file that `option` names is one of those that the command reads. Empty names
/// are of options that were not given.
void check_output(const std::string& option, const std::string& output, const std::vector<std::string>& inputs);

/// Throws SpecError where the folder of the file is not there, before work is done that would be lost.
void check_folder_of(const std::string& output);

}  // namespace moeline

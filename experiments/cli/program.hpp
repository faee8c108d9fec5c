// The program without its process: a command line in, results and an exit code out.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/cli/console.hpp"

namespace CLI {
class App;  // a header that takes seconds to read
}

namespace moeline {

/// All commands with their options; `version` is what --version prints. They will print to `console`, which has to
/// outlive them.
[[nodiscard]] std::shared_ptr<CLI::App> make_program(Console& console, const std::string& version);

/// Parses the arguments, without the program's name, runs the command that they name, and returns the exit code.
/// Throws SpecError for bad input, CLI::ParseError's message as UsageError, and what the system refuses as
/// std::system_error.
int run_command(const std::vector<std::string>& arguments, Console& console, const std::string& version);

/// A command line that makes no sense, in one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace moeline

// The program without its process: a command line in, results and an exit code out.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/arguments.hpp"

namespace moeline {

inline constexpr const char* kProgramAbout =
    "moeline predicts the timeline of Mixture-of-Experts work on a GPU cluster.";

inline constexpr const char* kProgramFooter =
    "Exit codes: 0 done; 1 --strict or a threshold failed (a model that does not fit is a warning without --strict); "
    "2 wrong usage; 3 bad input.\n"
    "A file that is called - is stdin. Results go to stdout, messages to stderr. Equal input gives equal bytes "
    "(simulate_ms aside).";

/// All commands with their options, as help lists them; `version` is what --version prints. They will print to
/// `console`, which has to outlive them.
[[nodiscard]] std::vector<Command> make_commands(Console& console, const std::string& version);

/// Parses the arguments, without the program's name, runs the command that they name, and returns the exit code.
/// Throws SpecError for bad input, UsageError for a command line that makes no sense, and what the system refuses as
/// std::system_error.
int run_command(const std::vector<std::string>& arguments, Console& console, const std::string& version);

}  // namespace moeline

// What an option takes: checks that CLI11 lacks.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace moeline {

/// For options whose argument must not be empty, as that of a forgotten shell variable is. Use as a check.
[[nodiscard]] CLI::Validator not_empty();

/// One of these names, in their spelling whatever the case; a refusal says which one is near. Use as a transform.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> names);

/// No option of any command takes one of its command's options for its value: of `--trace --strict` the value is
/// missing, and no file called --strict is written. Call it once all commands have their options.
void refuse_options_as_values(CLI::App& app);

// Ranks on the command line.

/// "all", or numbers; none of them: empty. Throws SpecError for one that was not simulated.
[[nodiscard]] std::set<std::uint32_t> parse_ranks(const std::string& option, const std::vector<std::string>& texts,
                                                  const std::set<std::uint32_t>& simulated);

}  // namespace moeline

// A trace on the command line, and how to read it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "experiments/cli/console.hpp"
#include "experiments/cli/trace_window.hpp"
#include "measured/replay.hpp"

namespace moeline {

struct MeasuredInput {
  std::string path;
  std::string map;            ///< mapping file; empty: none
  std::string communication;  ///< pattern; empty: that of the mapping file, or the built-in ones
  WindowOptions window;
};

/// A path on the command line: of a scenario, by its ending or as it is stdin, else of a trace.
[[nodiscard]] bool is_scenario(const std::string& path);

/// The trace, --map, --comm-pattern and the options of its window.
void add_measured_input(CLI::App& command, MeasuredInput& input);
/// --map and --comm-pattern alone, for a command that names its traces otherwise.
void add_kernel_map_options(CLI::App& command, MeasuredInput& input);
[[nodiscard]] KernelMap kernel_map_of(const MeasuredInput& input);
/// The trace, or the part of it that the options want.
[[nodiscard]] Trace load_trace(const MeasuredInput& input, const KernelMap& map, const Console& console);
[[nodiscard]] Measured load_measured(const MeasuredInput& input, const Console& console);

}  // namespace moeline

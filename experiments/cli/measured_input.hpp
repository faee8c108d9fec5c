// Options that restrict a trace to a part of it: --steps, --from, --to.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/arguments.hpp"
#include "measured/replay.hpp"
#include "trace/interpret.hpp"

namespace moeline {

struct WindowOptions {
  std::string steps;     ///< "3-5" or "3"; empty: all
  std::string from, to;  ///< us since the first GPU event; empty: the ends of the trace
};

[[nodiscard]] bool has_window(const WindowOptions& options);

[[nodiscard]] std::vector<Option> window_options(WindowOptions& options);

/// Throws UsageError for options that make no sense whatever the trace.
void check_window(const WindowOptions& options);

/// The part of the trace, or all of it where there are no options. Throws SpecError, with `file` and what the trace
/// has, where that is outside of it.
[[nodiscard]] Trace in_window(Trace trace, const WindowOptions& options, const KernelMap& map, const std::string& file);

inline constexpr const char* kWindowHelp =
    R"(--steps A-B: from the start of step A to the end of step B, as analyze lists steps: those of a server by position,
from 0, or where there are none the profiler's by the N of ProfilerStep#N. --from, --to: times in us since the trace's
first GPU event. What starts inside counts, to its own end; the rest of the trace is as if it were not there.)";

// A trace on the command line, and how to read it.

struct MeasuredInput {
  std::string path;
  std::string map;            ///< mapping file; empty: none
  std::string communication;  ///< pattern; empty: that of the mapping file, or the built-in ones
  WindowOptions window;
};

/// A path on the command line: of a scenario, by its ending or as it is stdin, else of a trace.
[[nodiscard]] bool is_scenario(const std::string& path);

/// The trace, --map, --comm-pattern and the options of its window.
[[nodiscard]] std::vector<Option> measured_input_options(MeasuredInput& input);
/// --map and --comm-pattern alone, for a command that names its traces otherwise.
[[nodiscard]] std::vector<Option> kernel_map_options(MeasuredInput& input);
[[nodiscard]] KernelMap kernel_map_of(const MeasuredInput& input);
/// The trace, or the part of it that the options want.
[[nodiscard]] Trace load_trace(const MeasuredInput& input, const KernelMap& map, const Console& console);
[[nodiscard]] Measured load_measured(const MeasuredInput& input, const Console& console);

}  // namespace moeline

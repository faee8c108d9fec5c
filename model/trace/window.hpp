// A part of a trace.
#pragma once

#include "trace/trace.hpp"

namespace moeline {

/// Times in ns as the trace's events have them.
struct TimeWindow {
  std::int64_t from_ns = 0, to_ns = 0;
};

/// The trace with the GPU events alone that start in the window, not at its end, and with those of the host's calls
/// that launched them or stand between their launches. Times, annotations, and the numbers of steps stay what they
/// were; steps without an event left are gone.
[[nodiscard]] Trace within(Trace trace, const TimeWindow& window);

}  // namespace moeline

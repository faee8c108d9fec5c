// The schedules by name.
#pragma once

#include "schedules/lower.hpp"

namespace moeline {

/// All forward layers, then all backward layers, one phase at a time: the baseline of every comparison.
[[nodiscard]] Program sequential(const Setup& setup);

/// One forward chunk overlapped with one backward chunk.
[[nodiscard]] Program dualpipe_chunk(const Setup& setup);

/// The program of the scenario's schedule.
[[nodiscard]] Program build_program(const Setup& setup);

}  // namespace moeline

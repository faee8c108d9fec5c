// The schedules by name.
#pragma once

#include "schedules/program.hpp"

namespace moeline {

/// One phase at a time: the baseline of every comparison. Training: all forward layers, then all backward layers.
/// Prefill and decode: one micro-batch of everything.
[[nodiscard]] Program sequential(const Setup& setup);

/// One forward chunk overlapped with one backward chunk.
[[nodiscard]] Program dualpipe_chunk(const Setup& setup);

/// Two micro-batches, each computing while the other's tokens travel.
[[nodiscard]] Program two_batch(const Setup& setup);

/// A whole pipeline of slots with given costs: all ranks of one pipeline.
[[nodiscard]] Program pipeline(const Setup& setup);

/// The program of the scenario's schedule.
[[nodiscard]] Program build_program(const Setup& setup);

}  // namespace moeline

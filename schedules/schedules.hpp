// Schedules that have a program of their own. Others are an overlap plan (lowering/inference_step.hpp), or a pipeline.
#pragma once

#include "schedules/lowering/program.hpp"

namespace moeline {

/// One phase at a time: the baseline of every comparison. Training: all forward layers, then all backward layers.
/// Prefill and decode: one micro-batch of everything.
[[nodiscard]] Program sequential(const Setup& setup);

/// One forward chunk overlapped with one backward chunk.
[[nodiscard]] Program dualpipe_chunk(const Setup& setup);

}  // namespace moeline

// The schedules of a chunk of training, of prefill and of decode; whole pipelines are in pipeline/.
#pragma once

#include "schedules/lowering/program.hpp"

namespace moeline {

/// One phase at a time: the baseline of every comparison. Training: all forward layers, then all backward layers.
/// Prefill and decode: one micro-batch of everything.
[[nodiscard]] Program sequential(const Setup& setup);

/// One forward chunk overlapped with one backward chunk.
[[nodiscard]] Program dualpipe_chunk(const Setup& setup);

/// Two micro-batches, each computing while the other's tokens travel.
[[nodiscard]] Program two_batch(const Setup& setup);
/// The scenario's plan of them, and what any such plan must place.
[[nodiscard]] OverlapPlan two_batch_plan(const Setup& setup);
[[nodiscard]] PlanContents two_batch_contents(const Setup& setup);

}  // namespace moeline

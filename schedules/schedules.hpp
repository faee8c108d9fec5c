// The schedules by name.
#pragma once

#include <functional>

#include "schedules/program.hpp"

namespace moeline {

/// One phase at a time: the baseline of every comparison. Training: all forward layers, then all backward layers.
/// Prefill and decode: one micro-batch of everything.
[[nodiscard]] Program sequential(const Setup& setup);

/// One forward chunk overlapped with one backward chunk.
[[nodiscard]] Program dualpipe_chunk(const Setup& setup);

/// Two micro-batches, each computing while the other's tokens travel.
[[nodiscard]] Program two_batch(const Setup& setup);

/// A whole pipeline, one GPU of each of its ranks: of slots with given costs, or of their operators.
[[nodiscard]] Program pipeline(const Setup& setup);
[[nodiscard]] Program training_step(const Setup& setup);
/// The same with one task for each slot, which takes as long as `slot_time` says.
[[nodiscard]] Program training_step(const Setup& setup, const std::function<Time(const Slot&)>& slot_time);
/// The operators of one slot on one rank, with nothing before it.
[[nodiscard]] Program slot_alone(const Setup& setup, const Slot& slot);
/// What each rank does, in order.
[[nodiscard]] std::vector<RankSlots> pipeline_slots(const Scenario& scenario);

/// The program of the scenario's schedule.
[[nodiscard]] Program build_program(const Setup& setup);

}  // namespace moeline

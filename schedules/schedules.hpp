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
/// How long a slot takes, and when after its start its passes have given their results.
struct SlotCourse {
  Time length{}, forward_out{}, backward_out{};
};
/// The same with one task for each slot.
[[nodiscard]] Program training_step(const Setup& setup, const std::function<SlotCourse(const Slot&)>& course_of);
/// The operators of one slot on one rank. Beside them, where sends overlap, what the slot before it gives is sent and
/// what the next one takes is received.
[[nodiscard]] Program slot_alone(const Setup& setup, const Slot& slot);
/// What each rank does, in order.
[[nodiscard]] std::vector<RankSlots> pipeline_slots(const Scenario& scenario);

/// The program of the scenario's schedule.
[[nodiscard]] Program build_program(const Setup& setup);

}  // namespace moeline

// How long each GPU event of a trace stood still, and from when that counts.
#pragma once

#include <vector>

#include "measured/release.hpp"

namespace moeline {

/// The time in front of an event: what it started later than whatever released it.
struct Pause {
  /// Stays whatever becomes of gaps. It lies before the GPU's first event, outside the span, which would grow if that
  /// event came sooner; or it is the distance to the anchor.
  std::int64_t given_ns = 0;
  std::int64_t gap_ns = 0;
  /// Of an event that waited for nothing known, such as the first of a stream whose launch is not in the trace: the
  /// event of its GPU that started last before it, to whose start it keeps its distance. Left where it is in time, it
  /// would stretch a run that a change makes shorter. -1: it has a release, or is the first of its GPU.
  std::int64_t anchor = -1;
};

/// By GPU event. What events waited for SMs is left out.
[[nodiscard]] std::vector<Pause> pauses_of(const Measured& measured, const Release& release);

}  // namespace moeline

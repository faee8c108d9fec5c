// What a reader of a learnt step must know before believing it.
#pragma once

#include "experiments/learn/learn.hpp"

namespace moeline {

/// Adds warnings: layers, machine or operators that are not those of the trace, names that contradict each other,
/// factors that no choice of a library explains, and what of the step is not compared. `run`: that it was aligned with.
void note_doubts(const Run& run, const Measured& measured, LearntTrace& trace);

}  // namespace moeline

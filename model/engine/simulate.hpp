// A task graph becomes a timeline.
//
// Invariants:
//  1. A task starts when every event it waits for has happened and its delay is over, and, if resident, when it has
//     all its SMs; an elastic one when its share of the SMs is above zero.
//  2. SMs held by residents, and shares of elastic tasks, never exceed the pool; usage x speed never exceeds a link.
//  3. Work done = integral of speed; a task ends at the first picosecond at which all its work is done, or later,
//     when an event its end waits for happens. Meanwhile it keeps its SMs and uses no link.
//  4. While another task that disturbs runs in its pool, a task goes at its disturbed speed at the most.
//  5. Ties break by task id. Equal graphs give equal timelines, to the bit.
#pragma once

#include "base/progress.hpp"
#include "engine/timeline.hpp"

namespace moeline {

struct SimulateOptions {
  bool record_changes = false;  ///< fill Timeline::changes (counters of a trace, tests)
  Progress progress{};          ///< told of tasks that have ended
};

/// Throws SpecError naming the tasks that can never start or never finish. Thread-safe: shares nothing.
[[nodiscard]] Timeline simulate(const TaskGraph& graph, const SimulateOptions& options = {});

/// Bytes of working memory simulate() needs per task, events in flight aside.
[[nodiscard]] std::size_t simulate_bytes_per_task();

}  // namespace moeline

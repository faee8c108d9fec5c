// What a run of the engine leaves behind.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/task_graph.hpp"

namespace moeline {

/// ready: released, and its delay is over. start: it makes progress (a resident has all its SMs). end: it is over.
/// ready <= start <= end; what lies between ready and start is waiting for SMs.
struct Span {
  Time ready{};
  Time start{};
  Time end{};
};

/// From `at` on, until the task's next change or its end, it works at `speed` (0 to 1) and holds `sms`. One whose work
/// is done and whose end still waits has speed 0 and keeps its SMs; so has one that waits for more SMs. Those of one
/// instant stand in the order of cause and effect.
struct Change {
  Time at{};
  TaskId task = 0;
  ResourceId limit = kNoPool;  ///< the resource that it could go faster with more of; kNoPool: none
  double speed = 0;
  double sms = 0;
};

struct Timeline {
  std::vector<Span> spans;      ///< by task
  std::vector<Change> changes;  ///< by time; empty unless asked for
  Time makespan{};
};

}  // namespace moeline

// Why a run came to a halt with tasks left over.
#pragma once

#include <span>
#include <string>

#include "graph/task_graph.hpp"

namespace moeline {

enum class Stuck : std::uint8_t {
  never_released,  ///< waits for something that is stuck itself
  no_sms,          ///< released, and never gets its SMs
  may_not_end,     ///< its work is done; its end waits for something that is stuck itself
};

struct StuckTask {
  TaskId task = 0;
  Stuck why = Stuck::never_released;
};

/// One message that names the tasks at the root of the halt, what each waits for, and who holds the SMs.
[[nodiscard]] std::string describe_stuck(const TaskGraph& graph, std::span<const StuckTask> stuck);

}  // namespace moeline

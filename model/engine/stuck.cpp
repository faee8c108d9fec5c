#include "engine/stuck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace moeline {
namespace {

constexpr std::size_t kNamed = 4;

// The stuck task whose start or end `event` waits for.
std::string waited_for(const TaskGraph& graph, std::span<const StuckTask> stuck, EventId event) {
  for (const StuckTask& other : stuck) {
    for (const EventId source : {start_of(other.task), end_of(other.task)}) {
      const auto successors = graph.successors(source);
      const bool waits = std::find(successors.begin(), successors.end(), event) != successors.end();
      if (waits && other.task != task_of(event)) return graph.task_name(other.task);
    }
  }
  return "nothing";
}

std::string holders(const TaskGraph& graph, std::span<const StuckTask> stuck, ResourceId pool) {
  std::vector<std::string> names;
  for (const StuckTask& other : stuck) {
    if (other.why != Stuck::may_not_end || graph.task(other.task).pool != pool) continue;
    names.push_back(fmt::format("'{}' ({} SMs)", graph.task_name(other.task), graph.task(other.task).sms));
  }
  if (names.size() > kNamed) names.resize(kNamed);
  return names.empty() ? "older residents that wait as well" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string describe_stuck(const TaskGraph& graph, std::span<const StuckTask> stuck) {
  std::vector<std::string> reasons;
  for (const StuckTask& entry : stuck) {
    if (reasons.size() == kNamed) break;
    const Task& task = graph.task(entry.task);
    if (entry.why == Stuck::no_sms) {
      reasons.push_back(fmt::format("'{}' never gets its {} SMs of '{}', which are held by {}",
                                    graph.task_name(entry.task), task.sms, graph.resources()[task.pool].name,
                                    holders(graph, stuck, task.pool)));
    } else if (entry.why == Stuck::may_not_end) {
      reasons.push_back(fmt::format("'{}' may not end before '{}'", graph.task_name(entry.task),
                                    waited_for(graph, stuck, end_of(entry.task))));
    }
  }
  return fmt::format("the schedule deadlocks with {} of {} tasks left: {}", stuck.size(), graph.size(),
                     fmt::join(reasons, "; "));
}

}  // namespace moeline

#include "experiments/run/chains.hpp"

#include "base/error.hpp"

namespace moeline {
namespace {

std::vector<bool> slowest_ranks(const Program& program) {
  std::vector<bool> slowest(program.graph.size(), false);
  for (const Meeting& meeting : program.meetings) {
    if (meeting.wait != kNoTask) slowest[meeting.wait] = true;
  }
  return slowest;
}

std::vector<std::vector<TaskId>> predecessors(const TaskGraph& graph, const std::vector<bool>& left_out) {
  std::vector<std::vector<TaskId>> before(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (left_out[task]) continue;
    for (const EventId event : graph.successors(end_of(task))) {
      MOELINE_CHECK(is_start(event), graph.task_name(task));
      before[task_of(event)].push_back(task);
    }
  }
  return before;
}

bool computes(const TaskGraph& graph, TaskId task) { return graph.task_class(task).role == Role::compute; }

// `task` waits for `previous` alone, which nothing else waits for.
bool continues(const TaskGraph& graph, TaskId previous, TaskId task) {
  return graph.successors(end_of(previous)).size() == 1 && graph.label(previous).phase == graph.label(task).phase &&
         computes(graph, previous) && computes(graph, task);
}

}  // namespace

Chains chains_of(const Program& program) {
  const TaskGraph& graph = program.graph;
  const std::vector<bool> left_out = slowest_ranks(program);
  const std::vector<std::vector<TaskId>> before = predecessors(graph, left_out);
  Chains chains;
  chains.of_task.resize(graph.size());
  for (const EventId event : graph.topological_order()) {
    if (!is_start(event)) continue;
    const TaskId task = task_of(event);
    if (left_out[task]) continue;
    const std::vector<TaskId>& waits_for = before[task];
    if (waits_for.size() == 1 && continues(graph, waits_for.front(), task)) {
      chains.of_task[task] = chains.of_task[waits_for.front()];
      chains.list[chains.of_task[task]].tasks.push_back(task);
      continue;
    }
    chains.of_task[task] = static_cast<std::uint32_t>(chains.list.size());
    Chain& chain = chains.list.emplace_back();
    chain.tasks.push_back(task);
    for (const TaskId each : waits_for) chain.before.push_back(chains.of_task[each]);
  }
  return chains;
}

}  // namespace moeline

#include "experiments/run/kernel_chains.hpp"

#include <numeric>
#include <span>

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

// Of every task those that it waits for, one list behind the other.
class Predecessors {
 public:
  Predecessors(const TaskGraph& graph, const std::vector<bool>& left_out) : begin_(graph.size() + 1, 0) {
    for_each_edge(graph, left_out, [&](TaskId /*before*/, TaskId after) { ++begin_[after + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    before_.resize(begin_.back());
    std::vector<std::uint32_t> next = begin_;
    for_each_edge(graph, left_out, [&](TaskId before, TaskId after) { before_[next[after]++] = before; });
  }
  [[nodiscard]] std::span<const TaskId> operator[](TaskId task) const {
    return {before_.data() + begin_[task], before_.data() + begin_[task + 1]};
  }

 private:
  template <class Visit>
  static void for_each_edge(const TaskGraph& graph, const std::vector<bool>& left_out, const Visit& visit) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (left_out[task]) continue;
      for (const EventId event : graph.successors(end_of(task))) {
        MOELINE_CHECK(is_start(event), graph.task_name(task));
        visit(task, task_of(event));
      }
    }
  }

  std::vector<std::uint32_t> begin_;
  std::vector<TaskId> before_;
};

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
  const Predecessors before(graph, left_out);
  Chains chains;
  chains.of_task.resize(graph.size());
  for (const EventId event : graph.topological_order()) {
    if (!is_start(event)) continue;
    const TaskId task = task_of(event);
    if (left_out[task]) continue;
    const std::span<const TaskId> waits_for = before[task];
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

#include "schedules/lowering/rank_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace moeline {
namespace {

// One task in the middle keeps the edges linear in the ranks.
void join(std::span<const RankProgram> ranks, std::size_t meeting, Label label, TaskGraphDraft& graph) {
  label.phase = ranks.front().meetings()[meeting].phase;
  const TaskId all = graph.add({}, label);
  for (const RankProgram& rank : ranks) {
    const Meeting& own = rank.meetings()[meeting];
    if (own.is_barrier()) {
      graph.start_after_start(own.arrives, all);
      graph.end_after_end(all, own.leaves);
    } else {
      graph.start_after_end(own.arrives, all);
      graph.start_after_end(all, own.leaves);
    }
  }
}

// Nothing is before it on its rank: all are there.
bool nobody_comes(const Meeting& meeting) { return meeting.arrives == kNoTask; }

// No rank leaves a meeting before all of its group have arrived: a barrier ends once every rank's spin has started, a
// kernel receives once every rank's messages are there, and a collective begins once every rank has come to it.
void join(std::vector<RankProgram>& ranks, TaskGraphDraft& graph) {
  Label label = ranks.front().label({}, StreamName::host, 0);
  label.name = graph.intern("all ranks have arrived");
  label.task_class = graph.add_class("host", Role::host);
  const std::span<const RankProgram> all = ranks;
  for (std::size_t i = 0; i < ranks.front().meetings().size(); ++i) {
    if (nobody_comes(ranks.front().meetings()[i])) continue;
    const int meet = ranks.front().meetings()[i].ranks;
    const std::size_t group = meet > 0 ? static_cast<std::size_t>(meet) : ranks.size();
    for (std::size_t first = 0; first < ranks.size(); first += group) {
      join(all.subspan(first, std::min(group, ranks.size() - first)), i, label, graph);
    }
  }
}

// The other ranks' programs are about as long.
void reserve_copies(std::size_t ranks, TaskGraphDraft& graph) {
  constexpr std::size_t kEdges = 2;  // of a task
  graph.reserve(ranks * graph.size(), kEdges * ranks * graph.size());
}

}  // namespace

Program on_every_rank(ProgramDraft&& program, const std::string& plan_file,
                      const std::function<void(RankProgram&)>& append) {
  const int count = program.setup().simulated_ranks();
  std::vector<RankProgram> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    append(ranks.emplace_back(program, rank));
    if (rank == 0) reserve_copies(static_cast<std::size_t>(count), program.graph());
  }
  if (count > 1 && !program.setup().free_communication) join(ranks, program.graph());
  try {
    std::vector<Meeting> meetings = ranks.front().meetings();
    std::erase_if(meetings, nobody_comes);
    return std::move(program).finish(count, std::move(meetings));
  } catch (const CycleError& error) {
    throw SpecError(plan_file, 0, fmt::format("this order cannot run: {}", error.what()));
  }
}

}  // namespace moeline

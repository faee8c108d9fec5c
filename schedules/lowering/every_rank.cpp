#include "schedules/lowering/every_rank.hpp"

#include <fmt/format.h>

namespace moeline {
namespace {

// No rank leaves a meeting before all have arrived: a barrier ends once every rank's spin has started, and a kernel
// receives once every rank's messages are there. One task in the middle keeps the edges linear in the ranks.
void join(std::vector<RankProgram>& ranks, TaskGraphDraft& graph) {
  Label label = ranks.front().label({}, StreamName::host, 0);
  label.name = graph.intern("all ranks have arrived");
  label.task_class = graph.add_class("host", Role::host);
  for (std::size_t i = 0; i < ranks.front().meetings().size(); ++i) {
    label.phase = ranks.front().meetings()[i].phase;
    const TaskId all = graph.add({}, label);
    for (const RankProgram& rank : ranks) {
      const Meeting& meeting = rank.meetings()[i];
      if (meeting.is_barrier()) {
        graph.start_after_start(meeting.arrives, all);
        graph.end_after_end(all, meeting.leaves);
      } else {
        graph.start_after_end(meeting.arrives, all);
        graph.start_after_end(all, meeting.leaves);
      }
    }
  }
}

}  // namespace

Program on_every_rank(ProgramDraft&& program, const std::string& plan_file,
                      const std::function<void(RankProgram&)>& append) {
  const int count = program.setup().simulated_ranks();
  std::vector<RankProgram> ranks;
  for (int rank = 0; rank < count; ++rank) append(ranks.emplace_back(program, rank));
  if (count > 1 && !program.setup().free_communication) join(ranks, program.graph());
  try {
    return std::move(program).finish(count, ranks.front().meetings());
  } catch (const CycleError& error) {
    throw SpecError(plan_file, 0, fmt::format("this order cannot run: {}", error.what()));
  }
}

}  // namespace moeline

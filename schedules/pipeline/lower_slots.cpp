#include "schedules/pipeline/lower_slots.hpp"

#include <fmt/format.h>

#include "schedules/pipeline/connect_passes.hpp"

namespace moeline {
namespace {

constexpr std::uint32_t kComputeStream = 7;  // as in a profiler trace

Time time_of(SlotKind kind, const SlotTimes& times) {
  switch (kind) {
    case SlotKind::forward:
      return times.f;
    case SlotKind::backward:
      return times.b;
    case SlotKind::backward_input:
      return times.b - times.w;
    case SlotKind::weight:
      return times.w;
    case SlotKind::forward_backward:
      return times.f_and_b;
  }
  return {};
}

TaskId add_slot(const Slot& slot, const SlotTimes& times, std::uint32_t rank, std::uint16_t stream,
                TaskGraphDraft& graph) {
  const Pass& pass = main_pass(slot);
  std::string detail = fmt::format("stage {}", pass.stage);
  if (slot.kind == SlotKind::forward_backward) detail += fmt::format(" and {}", slot.backward.stage);
  Label label;
  label.name = graph.intern(title_of(slot));
  label.detail = graph.intern(detail);
  label.task_class = graph.add_class("other", Role::compute);
  label.stream = stream;
  label.phase = graph.add_phase(
      {name_of(slot.kind), rank, static_cast<std::uint32_t>(pass.micro_batch), static_cast<std::uint32_t>(pass.chunk)});
  Task task;
  task.solo = time_of(slot.kind, times);
  return graph.add(task, label);
}

}  // namespace

TaskGraph lower_slots(const std::vector<RankSlots>& ranks, const SlotTimes& times) {
  TaskGraphDraft graph;
  std::vector<std::vector<SlotEnds>> ends(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::uint32_t>(i);
    const std::uint16_t stream = graph.add_stream({rank, kComputeStream, "compute", Role::compute});
    TaskId previous = kNoTask;
    for (const Slot& slot : ranks[i]) {
      const TaskId task = add_slot(slot, times, rank, stream, graph);
      if (previous != kNoTask) graph.start_after_end(previous, task);
      previous = task;
      ends[i].push_back({{task, task}, {task, task}});
    }
  }
  connect_passes(ranks, ends, graph, [&](const Delivery& d) { graph.start_after_end(d.out, d.in); });
  return TaskGraph(std::move(graph));
}

}  // namespace moeline

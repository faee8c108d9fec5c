#include "schedules/pipeline/lower_slots.hpp"

#include <fmt/format.h>

#include <algorithm>

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

namespace {

// Where each pass runs.
class PassTable {
 public:
  struct Entry {
    int rank = -1;
    PassEnds ends;
  };

  explicit PassTable(const std::vector<RankSlots>& ranks) {
    int micro_batches = 0;
    for (const RankSlots& slots : ranks) {
      for (const Slot& slot : slots) {
        stages_ = std::max({stages_, slot.forward.stage + 1, slot.backward.stage + 1});
        micro_batches = std::max({micro_batches, slot.forward.micro_batch + 1, slot.backward.micro_batch + 1});
      }
    }
    entries_.resize(static_cast<std::size_t>(stages_) * static_cast<std::size_t>(micro_batches));
  }

  void put(const Pass& pass, int rank, const PassEnds& ends) {
    Entry& entry = entries_[index(pass.micro_batch, pass.stage)];
    MOELINE_CHECK(entry.rank < 0, fmt::format("micro-batch {} passes stage {} twice", pass.micro_batch, pass.stage));
    entry = {rank, ends};
  }
  [[nodiscard]] const Entry& at(int micro_batch, int stage) const {
    const Entry& entry = entries_[index(micro_batch, stage)];
    MOELINE_CHECK(entry.rank >= 0, fmt::format("micro-batch {} never passes stage {}", micro_batch, stage));
    return entry;
  }
  [[nodiscard]] int stages() const { return stages_; }

 private:
  [[nodiscard]] std::size_t index(int micro_batch, int stage) const {
    return static_cast<std::size_t>(micro_batch) * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage);
  }

  int stages_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

void connect_passes(const std::vector<RankSlots>& ranks, const std::vector<std::vector<SlotEnds>>& ends,
                    TaskGraphDraft& graph, const std::function<void(const Delivery&)>& deliver) {
  PassTable forward(ranks);
  PassTable backward = forward;
  const auto each_slot = [&](const auto& visit) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
        visit(static_cast<int>(rank), i, ranks[rank][i], ends[rank][i]);
      }
    }
  };
  each_slot([&](int rank, std::size_t, const Slot& slot, const SlotEnds& own) {
    if (has_forward(slot.kind)) forward.put(slot.forward, rank, own.forward);
    if (has_backward(slot.kind)) backward.put(slot.backward, rank, own.backward);
  });
  each_slot([&](int rank, std::size_t index, const Slot& slot, const SlotEnds& own) {
    if (has_forward(slot.kind) && slot.forward.stage > 0) {
      (void)forward.at(slot.forward.micro_batch, slot.forward.stage - 1);  // somebody gives its input
    }
    if (has_forward(slot.kind) && slot.forward.stage + 1 < forward.stages()) {
      const auto& [to_rank, to] = forward.at(slot.forward.micro_batch, slot.forward.stage + 1);
      deliver({true, slot.forward.micro_batch, rank, to_rank, index, own.forward.out, to.in});
    }
    if (!has_backward(slot.kind)) return;
    graph.start_after_end(forward.at(slot.backward.micro_batch, slot.backward.stage).ends.out, own.backward.in);
    if (slot.backward.stage == 0) return;
    const auto& [to_rank, to] = backward.at(slot.backward.micro_batch, slot.backward.stage - 1);
    deliver({false, slot.backward.micro_batch, rank, to_rank, index, own.backward.out, to.in});
  });
}

}  // namespace moeline

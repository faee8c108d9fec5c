#include "schedules/pipeline/lower_slots.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {
namespace {

constexpr std::uint32_t kComputeStream = 7;  // as in a profiler trace

bool has_forward(const Slot& slot) { return slot.kind == SlotKind::forward || slot.kind == SlotKind::forward_backward; }
bool has_backward(const Slot& slot) { return slot.kind != SlotKind::forward && slot.kind != SlotKind::weight; }

std::string name_of(SlotKind kind) {
  switch (kind) {
    case SlotKind::forward:
      return "F";
    case SlotKind::weight:
      return "W";
    case SlotKind::forward_backward:
      return "F&B";
    default:
      return "B";
  }
}

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

// The tasks that make the output of each pass, forward or backward.
class PassTable {
 public:
  PassTable(int stages, int micro_batches)
      : stages_(stages), tasks_(static_cast<std::size_t>(stages) * static_cast<std::size_t>(micro_batches), kNoTask) {}

  void put(const Pass& pass, TaskId task) {
    TaskId& entry = tasks_[index(pass.micro_batch, pass.stage)];
    MOELINE_CHECK(entry == kNoTask, fmt::format("micro-batch {} passes stage {} twice", pass.micro_batch, pass.stage));
    entry = task;
  }
  [[nodiscard]] TaskId at(int micro_batch, int stage) const {
    const TaskId task = tasks_[index(micro_batch, stage)];
    MOELINE_CHECK(task != kNoTask, fmt::format("micro-batch {} never passes stage {}", micro_batch, stage));
    return task;
  }
  [[nodiscard]] int stages() const { return stages_; }

 private:
  [[nodiscard]] std::size_t index(int micro_batch, int stage) const {
    return static_cast<std::size_t>(micro_batch) * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage);
  }

  int stages_;
  std::vector<TaskId> tasks_;
};

PassTable empty_table(const std::vector<RankSlots>& ranks) {
  Pass last;
  for (const RankSlots& slots : ranks) {
    for (const Slot& slot : slots) {
      last.stage = std::max({last.stage, slot.forward.stage, slot.backward.stage});
      last.micro_batch = std::max({last.micro_batch, slot.forward.micro_batch, slot.backward.micro_batch});
    }
  }
  return {last.stage + 1, last.micro_batch + 1};
}

class Lowering {
 public:
  Lowering(const std::vector<RankSlots>& ranks, const SlotTimes& times)
      : times_(times), forward_(empty_table(ranks)), backward_(forward_) {}

  TaskGraph lower(const std::vector<RankSlots>& ranks) && {
    std::uint32_t id = 0;
    for (const RankSlots& slots : ranks) add_rank(id++, slots);
    TaskId task = 0;  // slots became tasks in this same order
    for (const RankSlots& slots : ranks) {
      for (const Slot& slot : slots) connect(slot, task++);
    }
    return TaskGraph(std::move(draft_));
  }

 private:
  void add_rank(std::uint32_t rank, const RankSlots& slots) {
    const std::uint16_t stream = draft_.add_stream({rank, kComputeStream, "compute", Role::compute});
    TaskId previous = kNoTask;
    for (const Slot& slot : slots) {
      const TaskId task = add_slot(slot, rank, stream);
      if (previous != kNoTask) draft_.start_after_end(previous, task);
      previous = task;
    }
  }

  TaskId add_slot(const Slot& slot, std::uint32_t rank, std::uint16_t stream) {
    const Pass& pass = has_forward(slot) ? slot.forward : slot.backward;
    const std::string kind = name_of(slot.kind);
    std::string name = fmt::format("{} {}", kind, pass.micro_batch);
    std::string detail = fmt::format("stage {}", pass.stage);
    if (slot.kind == SlotKind::forward_backward) {
      name = fmt::format("F {} & B {}", slot.forward.micro_batch, slot.backward.micro_batch);
      detail += fmt::format(" and {}", slot.backward.stage);
    }
    Label label;
    label.name = draft_.intern(name);
    label.detail = draft_.intern(detail);
    label.task_class = draft_.add_class("other", Role::compute);
    label.stream = stream;
    label.phase = draft_.add_phase(
        {kind, rank, static_cast<std::uint32_t>(pass.micro_batch), static_cast<std::uint32_t>(pass.chunk)});
    Task task;
    task.solo = time_of(slot.kind, times_);
    const TaskId id = draft_.add(task, label);
    if (has_forward(slot)) forward_.put(slot.forward, id);
    if (has_backward(slot)) backward_.put(slot.backward, id);
    return id;
  }

  void connect(const Slot& slot, TaskId task) {
    const auto [micro_batch, stage, chunk] = slot.backward;
    if (has_forward(slot) && slot.forward.stage > 0) {
      draft_.start_after_end(forward_.at(slot.forward.micro_batch, slot.forward.stage - 1), task);
    }
    if (has_backward(slot)) {
      draft_.start_after_end(forward_.at(micro_batch, stage), task);
      if (stage + 1 < backward_.stages()) draft_.start_after_end(backward_.at(micro_batch, stage + 1), task);
    }
    if (slot.kind == SlotKind::weight) draft_.start_after_end(backward_.at(micro_batch, stage), task);
  }

  SlotTimes times_;
  TaskGraphDraft draft_;
  PassTable forward_, backward_;
};

}  // namespace

TaskGraph lower_slots(const std::vector<RankSlots>& ranks, const SlotTimes& times) {
  return Lowering(ranks, times).lower(ranks);
}

}  // namespace moeline

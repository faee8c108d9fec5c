// A whole step of training on all ranks of a pipeline, one GPU of each: slots become the operators of their passes,
// activations travel between stages, and the optimizer comes last.
//
// F, B and W run alone, one phase after the other; nothing of a slot that runs alone starts before the slot before it
// has ended. F&B are two passes that overlap as the plan says, and start as soon as streams and data allow.
#include "schedules/pipeline/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/lowering/training_passes.hpp"
#include "schedules/pipeline/host_copies.hpp"
#include "schedules/pipeline/lower_slots.hpp"
#include "schedules/pipeline/messages.hpp"
#include "schedules/pipeline/optimizer_step.hpp"
#include "schedules/pipeline/pipelines.hpp"
#include "schedules/pipeline/split_blocks.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {
namespace {

PassEnds ends_of(const PassTasks& tasks) { return {tasks.input.first, tasks.output.last}; }

PassKind pass_of(SlotKind kind) {
  switch (kind) {
    case SlotKind::forward:
      return PassKind::forward;
    case SlotKind::backward_input:
      return PassKind::backward_input;
    case SlotKind::weight:
      return PassKind::weight;
    default:
      return PassKind::backward;
  }
}

// The backward pass of the slot's forward pass.
bool undoes(const Slot& next, const Slot& slot) {
  return has_forward(slot.kind) && has_backward(next.kind) && next.backward.stage == slot.forward.stage &&
         next.backward.micro_batch == slot.forward.micro_batch;
}

class StepWriter {
 public:
  /// `timing_of`: of a slot without its operators. `stages`: empty where they are not known yet.
  explicit StepWriter(const Setup& setup, const TimingOfSlot& timing_of = {}, std::vector<StageBlocks> stages = {})
      : setup_(setup),
        timing_of_(timing_of),
        overlaps_(overlaps_passes(setup.scenario)),
        plan_(training_plan(setup.scenario)),
        program_(setup, host_of(setup.scenario)),
        alone_(program_),
        overlapped_(program_, plan_),
        split_(program_),
        copies_(program_),
        stages_(stages.empty() ? stages_of(alone_) : std::move(stages)),
        slots_(pipeline_slots(setup.scenario)),
        held_(slots_.size()) {
    for (const StageBlocks& stage : stages_) reversed_.emplace_back(stage.rbegin(), stage.rend());
  }

  TrainingStep write() && {
    const int count = setup_.scenario.parallelism.pp;
    offloads_ = true;
    ranks_.reserve(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank) {
      ranks_.emplace_back(program_, rank);
      append_rank(static_cast<std::size_t>(rank));
    }
    connect();
    append_optimizer_step(program_, ranks_, held_, copies_);
    return finish(count);
  }

  TrainingStep write(const Slot& slot) && {
    ranks_.emplace_back(program_, 0);
    if (setup_.scenario.training.overlap_sends) Messages(program_, ranks_).beside(slot);
    (void)write_slot(0, slot);
    return finish(1);
  }

 private:
  TrainingStep finish(int ranks) {
    try {
      return {std::move(program_).finish(ranks, {}),
              {std::move(written_), std::move(stages_), std::move(copies_).stays()}};
    } catch (const CycleError& error) {
      throw SpecError(plan_.file, 0, fmt::format("this order cannot run: {}", error.what()));
    }
  }

  [[nodiscard]] bool runs_alone(const Slot& slot) const {
    return slot.kind != SlotKind::forward_backward || !overlaps_;
  }

  [[nodiscard]] bool waits_for_sends() const { return !setup_.scenario.training.overlap_sends; }

  void append_rank(std::size_t number) {
    RankProgram& rank = ranks_.back();
    const RankSlots& slots = slots_[number];
    ends_.emplace_back();
    before_slot_.emplace_back();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const bool waits = i > 0 && (runs_alone(slots[i]) || runs_alone(slots[i - 1]) || waits_for_sends());
      before_slot_.back().push_back(waits ? rank.join_streams() : kNoTask);
      const bool completes = completes_gradients(slots, i);
      by_block_ = completes && reduces_by_block();
      gathers_ = setup_.scenario.training.overlap_parameters && is_first_forward(slots, i);
      returns_at_once_ = i + 1 < slots.size() && undoes(slots[i + 1], slots[i]);
      ends_.back().push_back(write_slot(number, slots[i]));
      if (completes) note_gradients(number, slots[i].backward.stage);
    }
  }

  SlotEnds write_slot(std::size_t rank, const Slot& slot) {
    const auto phases = [&] { return static_cast<std::uint32_t>(program_.graph().phases()); };
    const std::uint32_t first_phase = phases();
    const SlotEnds ends = append_slot(ranks_[rank], slot);
    written_.push_back(
        {slot, static_cast<std::uint32_t>(rank), first_phase, phases(), ends.forward.out, ends.backward.out});
    return ends;
  }

  [[nodiscard]] const StageBlocks& forward_blocks(const Slot& slot) const {
    return stages_[static_cast<std::size_t>(slot.forward.stage)];
  }
  [[nodiscard]] const StageBlocks& backward_blocks(const Slot& slot) const {
    return reversed_[static_cast<std::size_t>(slot.backward.stage)];
  }

  SlotEnds append_slot(RankProgram& rank, const Slot& slot) {
    if (timing_of_) return append_as_one(rank, slot);
    PassTasks forward;
    PassTasks backward;
    if (slot.kind == SlotKind::forward_backward && overlaps_) {
      const OverlappedTasks tasks = append_overlapped(rank, overlapped_, plan_,
                                                      {.forward = forward_blocks(slot),
                                                       .backward = backward_blocks(slot),
                                                       .forward_micro_batch = slot.forward.micro_batch,
                                                       .backward_micro_batch = slot.backward.micro_batch,
                                                       .around_forward = around_forward(rank, slot),
                                                       .around_backward = around_backward(rank, slot)});
      forward = tasks.forward;
      backward = tasks.backward;
    } else {
      if (has_forward(slot.kind)) {
        forward = append_pass(rank, alone_, PassKind::forward, forward_blocks(slot), slot.forward.micro_batch,
                              around_forward(rank, slot));
      }
      if (slot.kind == SlotKind::forward_backward) rank.join_streams();
      if (slot.kind != SlotKind::forward) {
        backward = append_pass(rank, alone_, pass_of(slot.kind), backward_blocks(slot), slot.backward.micro_batch,
                               around_backward(rank, slot));
      }
    }
    SlotEnds ends{ends_of(forward), ends_of(backward)};
    if (slot.kind == SlotKind::forward_backward) {  // starts once both inputs are there, as the reference does
      ends.forward.in = ends.backward.in = rank.gate(forward.input, backward.input);
    }
    return ends;
  }

  // Parameters that replicas split come before a block, and its gradients go behind it.
  AroundBlocks splitting(RankProgram& rank, PassKind kind) {
    const TrainingChoices& choices = setup_.scenario.training;
    const bool as_one = static_cast<bool>(timing_of_);  // what every pass gathers and reduces is part of its slot then
    const bool has_gradients = kind == PassKind::backward || kind == PassKind::weight;
    const bool early = gathers_ && kind == PassKind::forward;
    const bool gathers = choices.splits_parameters() ? kind != PassKind::weight && !as_one : early;
    const bool ends_blocks = by_block_ && has_gradients;
    const bool reduces = choices.splits_gradients() && !as_one && has_gradients;
    AroundBlocks around;
    if (!gathers && !reduces && !ends_blocks) return around;
    around.before = [this, &rank, gathers, reduces](const Block& block) {
      std::vector<TaskId> there = gathers ? split_.gather(rank, block) : std::vector<TaskId>{};
      const TaskId room = reduces ? split_.room_for_gradients(rank) : kNoTask;
      if (room != kNoTask) there.push_back(room);
      return there;
    };
    around.after = [this, &rank, reduces, ends_blocks](const Block& block, const BlockTasks& tasks) {
      if (tasks.first != kNoTask) split_.note(rank, block, tasks.first);
      const TaskId end = reduces ? split_.reduce(rank, block, tasks.computed) : tasks.computed;
      if (ends_blocks) block_ends_.push_back(end);
    };
    return around;
  }

  AroundBlocks around_forward(RankProgram& rank, const Slot& slot) {
    const AroundBlocks parts = splitting(rank, PassKind::forward);
    if (!offloads_) return parts;
    const int micro_batch = slot.forward.micro_batch;
    return both(parts, copies_.around_forward(rank, forward_blocks(slot), micro_batch, returns_at_once_));
  }

  AroundBlocks around_backward(RankProgram& rank, const Slot& slot) {
    const AroundBlocks parts = splitting(rank, pass_of(slot.kind));
    if (!offloads_ || !has_backward(slot.kind)) return parts;
    return both(parts, copies_.around_backward(rank, slot.backward.micro_batch));
  }

  SlotEnds append_as_one(RankProgram& rank, const Slot& slot) {
    const Pass& pass = main_pass(slot);
    const SlotTiming timing = timing_of_(slot, rank.rank());
    const PhaseTasks tasks = rank.append_time(name_of(slot.kind), title_of(slot), timing.length,
                                              {pass.chunk, pass.micro_batch, StreamName::compute});
    bool waits = false;
    if (has_forward(slot.kind)) {
      waits = append_around(rank, forward_blocks(slot), tasks, timing.length, around_forward(rank, slot));
    }
    if (slot.kind != SlotKind::forward) {
      waits = append_around(rank, backward_blocks(slot), tasks, timing.length, around_backward(rank, slot)) || waits;
    }
    const auto result = [&](Time at) {
      return waits || at >= timing.length ? tasks.last : rank.after_start(tasks, at);
    };
    return {{tasks.first, result(timing.forward_out)}, {tasks.first, result(timing.backward_out)}};
  }

  // As if all blocks of the slot took equally long. True where the slot may take longer by it.
  bool append_around(RankProgram& rank, const StageBlocks& blocks, const PhaseTasks& slot, Time length,
                     const AroundBlocks& around) {
    bool waits = false;
    const auto count = static_cast<std::int64_t>(blocks.size());
    const auto start_of = [&](std::int64_t block) { return rank.after_start(slot, length * block / count); };
    for (std::int64_t i = 0; i < count; ++i) {
      const Block& block = blocks[static_cast<std::size_t>(i)];
      for (const TaskId there : around.before ? around.before(block) : std::vector<TaskId>{}) {
        waits = true;
        if (i == 0) {
          program_.graph().start_after_end(there, slot.first);
        } else {
          rank.end_after(slot, there, length * (count - i) / count);
        }
      }
      if (around.after) around.after(block, {i == 0 ? slot.first : start_of(i), start_of(i + 1)});
    }
    return waits;
  }

  // The first pass of a step through a stage, whose parameters the optimizer has just changed. It overlaps no other.
  [[nodiscard]] static bool is_first_forward(const RankSlots& slots, std::size_t index) {
    const auto of_stage = [&](const Slot& slot) {
      return has_forward(slot.kind) && slot.forward.stage == slots[index].forward.stage;
    };
    return slots[index].kind == SlotKind::forward &&
           std::none_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(index), of_stage);
  }

  // After the last slot with gradients of a stage's weights they are complete.
  [[nodiscard]] static bool completes_gradients(const RankSlots& slots, std::size_t index) {
    const auto of_stage = [&](const Slot& slot) {
      return has_weight(slot.kind) && slot.backward.stage == slots[index].backward.stage;
    };
    return has_weight(slots[index].kind) &&
           std::none_of(slots.begin() + static_cast<std::ptrdiff_t>(index) + 1, slots.end(), of_stage);
  }

  // Megatron reduces gradients in buckets, as the last backward pass completes them; a layer is one here.
  [[nodiscard]] bool reduces_by_block() const {
    const TrainingChoices& choices = setup_.scenario.training;
    return choices.by_megatron() && choices.overlap_gradients && setup_.scenario.kind().plan.empty();
  }

  void note_gradients(std::size_t rank, int stage) {
    const StageBlocks& blocks = stages_[static_cast<std::size_t>(stage)];
    if (!by_block_) {
      held_[rank].push_back({stage, 0, blocks, ranks_[rank].computed()});
      return;
    }
    for (std::size_t i = 0; i < block_ends_.size(); ++i) {  // backward
      held_[rank].push_back({stage, static_cast<int>(i), {blocks[blocks.size() - 1 - i]}, block_ends_[i]});
    }
    block_ends_.clear();
    by_block_ = false;
  }

  void connect() {
    Messages messages(program_, ranks_);
    connect_passes(slots_, ends_, program_.graph(), [&](const Delivery& delivery) {
      const TaskId sent = messages.deliver(delivery);
      const std::vector<TaskId>& before_slot = before_slot_[static_cast<std::size_t>(delivery.from_rank)];
      const std::size_t next = delivery.from_slot + 1;
      if (sent == kNoTask || !waits_for_sends() || next == before_slot.size()) return;
      program_.graph().start_after_end(sent, before_slot[next]);
    });
  }

  const Setup& setup_;
  TimingOfSlot timing_of_;
  bool overlaps_;
  OverlapPlan plan_;
  ProgramDraft program_;
  TrainingPhases alone_, overlapped_;
  SplitBlocks split_;
  HostCopies copies_;
  std::vector<StageBlocks> stages_, reversed_;
  std::vector<RankSlots> slots_;
  std::vector<RankProgram> ranks_;
  std::vector<std::vector<SlotEnds>> ends_;       // by rank and slot
  std::vector<std::vector<TaskId>> before_slot_;  // the same: what it waits for, kNoTask where streams run on
  std::vector<std::vector<HeldBlocks>> held_;     // by rank
  bool offloads_ = false;                         // the slots of a step have copies beside them, one alone has none
  bool returns_at_once_ = false;                  // the slot behind it is the backward pass of its forward pass
  bool gathers_ = false;                          // the slot being written needs parameters that are on their way
  bool by_block_ = false;                         // the slot being written completes gradients block by block
  std::vector<TaskId> block_ends_;                // of that slot
  std::vector<ProgramSlot> written_;
};

}  // namespace

TrainingStep training_step(const Setup& setup) { return StepWriter(setup).write(); }

TrainingStep training_step(const Setup& setup, const std::vector<StageBlocks>& stages, const TimingOfSlot& timing_of) {
  return StepWriter(setup, timing_of, stages).write();
}

TrainingStep slot_alone(const Setup& setup, const Slot& slot, const std::vector<StageBlocks>& stages) {
  return StepWriter(setup, {}, stages).write(slot);
}

}  // namespace moeline

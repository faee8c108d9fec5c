// A whole step of training: the tasks of all ranks of a pipeline, and which of them are which slot.
#pragma once

#include <functional>
#include <vector>

#include "schedules/pipeline/host_copies.hpp"
#include "schedules/pipeline/slot.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

/// A slot of a pipeline: the phases of the graph from one up to another.
struct ProgramSlot {
  Slot slot;
  std::uint32_t rank = 0;
  std::uint32_t first_phase = 0, end_phase = 0;
  TaskId forward_out = kNoTask, backward_out = kNoTask;  ///< that give its passes' results
};

struct StepLayout {
  std::vector<ProgramSlot> slots;   ///< rank by rank, in order of execution
  std::vector<StageBlocks> stages;  ///< in the order of the forward pass
  std::vector<StayOnGpu> stays{};   ///< of what is offloaded
};

struct TrainingStep {
  Program program;
  StepLayout layout;
};

/// One GPU of each rank of the pipeline, with the operators of its slots.
[[nodiscard]] TrainingStep training_step(const Setup& setup);

/// How long a slot takes, and when after its start its passes have given their results.
struct SlotTiming {
  Time length{}, forward_out{}, backward_out{};
};
/// Of a slot of a rank of the pipeline.
using TimingOfSlot = std::function<SlotTiming(const Slot&, int rank)>;
/// The same with one task for each slot. `stages`: the scenario's (stages_of).
[[nodiscard]] TrainingStep training_step(const Setup& setup, const std::vector<StageBlocks>& stages,
                                         const TimingOfSlot& timing_of);

/// The operators of one slot on rank 0. Beside them, where sends overlap, what the slot before it gives is sent and
/// what the next one takes is received.
[[nodiscard]] TrainingStep slot_alone(const Setup& setup, const Slot& slot, const std::vector<StageBlocks>& stages);

}  // namespace moeline

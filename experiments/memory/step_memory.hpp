// What each rank of a pipeline holds in memory over a step of training.
#pragma once

#include "experiments/memory/memory_over_time.hpp"
#include "experiments/memory/parts.hpp"
#include "schedules/pipeline/training_step.hpp"
#include "timeline/phases.hpp"

namespace moeline {

/// Something that is offloaded lies in the GPU's memory, as StayOnGpu has it.
struct OffloadedStay {
  StayOnGpu what{};
  Time from{}, to{};
};

struct RankMemory {
  StepMemory peak{};
  Time peak_at{};
  std::vector<MemoryPeak> peaks{};  ///< of every kind of pass that runs, the highest first
  double host = 0;                  ///< bytes that wait in the host's memory for this GPU, at most
  int most_passes = 0;
  std::vector<MemoryChange> changes{};
};

/// Of each rank. Weights, gradients and optimizer states of the rank's stages stay. What a pass saves is there from its
/// F until its B, block by block as slot_memory has it, and a slot frees what it frees by the start of the next one at
/// the latest; of a B without the gradients of weights, what those need is there from then on until their W. What is
/// offloaded is there as StayOnGpu says.
/// `slots`: when each slot of the layout ran.
[[nodiscard]] std::vector<RankMemory> step_memory(const Setup& setup, const StepLayout& layout,
                                                  const std::vector<PhaseTimes>& slots,
                                                  const std::vector<OffloadedStay>& stays);

}  // namespace moeline

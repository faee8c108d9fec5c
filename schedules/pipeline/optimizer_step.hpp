// What a step of training ends with: gradients are summed over replicas, the optimizer runs, parameters go back.
#pragma once

#include <vector>

#include "schedules/lowering/rank_program.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {

/// A stage on a rank, and the end of its last gradient of weights there.
struct HeldStage {
  int stage = 0;
  TaskId complete = kNoTask;
};

/// Replicas of a stage are its dp ranks, and those of every other rank of the pipeline that holds it (DualPipe: two). A
/// stage's gradients are reduce-scattered once they are complete on all of them, replicated parameters over dp and
/// experts over dp / ep; then all ranks meet for the norm of the gradients; each updates its part, and all-gathers the
/// weights as they lie in memory (ZeRO-1, arXiv 1910.02054). Without ZeRO-1 gradients are all-gathered instead, and
/// each rank updates everything. `held`: by rank.
void append_optimizer_step(ProgramDraft& program, std::vector<RankProgram>& ranks,
                           const std::vector<std::vector<HeldStage>>& held, const std::vector<StageBlocks>& stages);

}  // namespace moeline

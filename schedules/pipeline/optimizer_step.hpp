// What a step of training ends with: gradients are summed over replicas, the optimizer runs, parameters go back.
#pragma once

#include <vector>

#include "schedules/pipeline/host_copies.hpp"
#include "schedules/pipeline/stages.hpp"

namespace moeline {

/// Blocks of a stage on a rank, and the end of their last gradient of weights there: all of it, or one of its parts.
struct HeldBlocks {
  int stage = 0;
  int part = 0;
  StageBlocks blocks;
  TaskId complete = kNoTask;
};

/// Replicas of a stage are its cp x dp ranks, and those of every other rank of the pipeline that holds it (DualPipe:
/// two). The gradients of a part are reduce-scattered once they are complete on all of them, replicated parameters over
/// cp x dp and experts over tp x cp x dp / (ep x moe_tp); then all ranks meet for the norm of the gradients; each
/// updates its part, and all-gathers the weights: as they lie in memory, by Megatron in BF16 (ZeRO-1, arXiv
/// 1910.02054), or before the first forward pass, block by block. Tensor parallel ranks sum what each has whole before
/// the norm. Without ZeRO-1 gradients are all-gathered instead, and each rank updates everything; with ZeRO-2 and -3
/// they are complete once reduced (split_blocks.hpp), and with ZeRO-3 no weights are gathered. States that
/// wait in the host's memory come back before. `held`: by rank.
void append_optimizer_step(ProgramDraft& program, std::vector<RankProgram>& ranks,
                           const std::vector<std::vector<HeldBlocks>>& held, HostCopies& copies);

}  // namespace moeline

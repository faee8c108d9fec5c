// Prefill and decode on a pipeline of stages, one GPU of each: micro-batches of requests go round it, or the chunks of
// a prompt follow each other through it.
//
//   stage 0   0 1 2 3 0 1 2 3        decode: a micro-batch begins again once the last stage has sampled its tokens
//   stage 1     0 1 2 3 0 1 2 3
//
//   stage 0   a b c d A B C D        prefill: chunks a to d of a prompt, then those of the next one
//   stage 1     a b c d A B C D      c needs the keys of a and b, which its own stage has
#pragma once

#include <vector>

#include "schedules/lowering/program.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

/// One micro-batch or chunk in one stage.
struct StagePass {
  TaskId begins = kNoTask;                    ///< its first kernel
  TaskId ends = kNoTask;                      ///< once all of it has ended
  TaskId received = kNoTask, sent = kNoTask;  ///< the messages before and behind it; kNoTask: there is none
};

/// Of one round: each micro-batch once, or each chunk of a prompt, by stage.
using StageRound = std::vector<std::vector<StagePass>>;

struct InferencePipeline {
  Program program;
  std::vector<StageRound> rounds;  ///< enough for steady state, and then as many as keep all stages busy
  std::size_t steady = 0;          ///< the round that is in steady state from its begin to its end
};

/// REQUIRES: is_staged.
[[nodiscard]] InferencePipeline inference_pipeline(const Setup& setup);

}  // namespace moeline

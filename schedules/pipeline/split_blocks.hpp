// Blocks whose gradients and parameters replicas split (ZeRO-2 and -3, arXiv 1910.02054; FSDP, arXiv 2304.11277).
#pragma once

#include <map>
#include <vector>

#include "schedules/lowering/training_passes.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {

/// Of the one rank of a pipeline of one stage. Parameters of a block are gathered while the block before it runs, and
/// freed behind it; its gradients are reduce-scattered beside the next one. Each has a stream of its own.
class SplitBlocks {
 public:
  /// REQUIRES: `program` outlives it.
  explicit SplitBlocks(ProgramDraft& program) : program_(program) {}

  /// The end of the gathers, or kNoTask where the block is still there: a pass begins with the block that the one
  /// before it ended with.
  TaskId gather(RankProgram& rank, const Block& block);
  /// To be told of each block behind its phases.
  void note(const Block& block, TaskId first);
  /// The end of the reduce-scatters.
  TaskId reduce(RankProgram& rank, const Block& block, TaskId computed);

 private:
  struct Kernels {
    std::vector<PreparedPhase*> gathers, reductions;
  };
  Kernels& kernels_of(const Block& block);

  ProgramDraft& program_;
  std::map<std::pair<double, double>, Kernels> kernels_;  // by parameters, those of experts apart
  bool is_first_ = true;
  Block last_{};  // that ran
  TaskId last_start_ = kNoTask;
};

}  // namespace moeline

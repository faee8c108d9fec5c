// Blocks whose gradients and parameters replicas split (ZeRO-2 and -3, arXiv 1910.02054; FSDP, arXiv 2304.11277), and
// those whose parameters are gathered beside the first forward pass of a step.
#pragma once

#include <map>
#include <vector>

#include "schedules/lowering/training_passes.hpp"
#include "schedules/pipeline/replicas.hpp"

namespace moeline {

/// Phases that run beside the passes of their slots: early gathers and late reductions are no part of these.
inline constexpr const char* kGather = "gather";
inline constexpr const char* kReduction = "reduce-scatter";

/// Parameters of a block are gathered while the block before it runs on its rank; its gradients are reduce-scattered
/// beside the next one, and those of no third block are there meanwhile: the one behind it waits for the end (FSDP2
/// lets one reduction be on its way, _fsdp_param_group.py). Each has a stream of its own.
class SplitBlocks {
 public:
  /// REQUIRES: `program` outlives it.
  explicit SplitBlocks(ProgramDraft& program) : program_(program) {}

  /// The ends of the gathers; none where the block is still there: a pass begins with the block that the one before it
  /// ended with.
  std::vector<TaskId> gather(RankProgram& rank, const Block& block);
  /// What a block waits for before its gradients may come; kNoTask: nothing.
  [[nodiscard]] TaskId room_for_gradients(const RankProgram& rank) const;
  /// To be told of each block behind its phases.
  void note(const RankProgram& rank, const Block& block, TaskId first);
  /// The end of the reduce-scatters.
  TaskId reduce(RankProgram& rank, const Block& block, TaskId computed);

 private:
  struct Kernels {
    std::vector<PreparedPhase*> gathers, reductions;
  };
  Kernels& kernels_of(const Block& block);

  ProgramDraft& program_;
  std::map<std::pair<double, double>, Kernels> kernels_;  // by parameters, those of experts apart
  struct Ran {
    Block block{};
    TaskId start = kNoTask;
  };
  struct Reductions {
    TaskId last = kNoTask, before_last = kNoTask;
  };
  std::map<int, Ran> last_;               // by rank
  std::map<int, Reductions> reductions_;  // the same
};

}  // namespace moeline

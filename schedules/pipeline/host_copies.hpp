// What waits in the host's memory: activations between a block's forward and backward pass (Megatron-Core's
// fine-grained activation offloading), and the optimizer's states while the passes of a step run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "schedules/lowering/training_passes.hpp"

namespace moeline {

/// Phases of copies, which run beside the passes of their slots and are no part of these.
inline constexpr const char* kOffload = "offload";
inline constexpr const char* kReload = "reload";

/// Something that is offloaded lies in the GPU's memory from the start of one task to the end of another.
struct StayOnGpu {
  std::uint32_t rank = 0;
  std::optional<Block> block{};  ///< whose activations; none: the optimizer's states
  int micro_batch = 0;
  bool is_back = false;   ///< the second stay, after having been away
  TaskId from = kNoTask;  ///< kNoTask: the start of the step
  TaskId to = kNoTask;    ///< kNoTask: its end
};

/// Activations leave once their block's forward pass has computed, and come back while the block before it in the
/// order of backward passes runs on its rank. States leave at the start of the step, and come back behind the last
/// gradients of their rank. Each of the four has a stream of its own; they share the link.
class HostCopies {
 public:
  /// REQUIRES: `program` outlives it.
  explicit HostCopies(ProgramDraft& program) : program_(program) {}

  /// Of a forward pass. `returns_at_once`: the backward pass of the micro-batch comes next on the rank, so that what
  /// the last layer keeps may stay.
  [[nodiscard]] AroundBlocks around_forward(RankProgram& rank, std::span<const Block> blocks, int micro_batch,
                                            bool returns_at_once);
  [[nodiscard]] AroundBlocks around_backward(RankProgram& rank, int micro_batch);

  /// Both ways. `complete`: the rank's gradients are. The end of the copy back.
  TaskId move_states(RankProgram& rank, double bytes, std::span<const TaskId> complete);

  [[nodiscard]] std::vector<StayOnGpu> stays() && { return std::move(stays_); }

 private:
  void leave(RankProgram& rank, const Block& block, int micro_batch, const BlockTasks& forward);
  std::vector<TaskId> come_back(RankProgram& rank, const Block& block, int micro_batch);
  void used(const RankProgram& rank, const Block& block, int micro_batch, const BlockTasks& backward);
  PhaseTasks append(RankProgram& rank, Family family, const char* module, double bytes, const Place& place);
  [[nodiscard]] double bytes_of(const Block& block, int micro_batch) const;

  using Key = std::tuple<int, int, int>;  // rank, layer, micro-batch
  struct Away {
    TaskId left = kNoTask, back = kNoTask;  // the end of the one copy, the start of the other
  };

  ProgramDraft& program_;
  std::map<std::tuple<Family, std::string, double>, PreparedPhase*> phases_;  // by module and bytes
  std::map<Key, Away> away_;
  std::map<int, TaskId> last_backward_;  // by rank: the start of the block whose backward pass came last
  std::vector<StayOnGpu> stays_;
};

}  // namespace moeline

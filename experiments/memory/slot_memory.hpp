// What a slot of a pipeline does to the memory of its rank while it runs, block by block.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "schedules/pipeline/slot.hpp"

namespace moeline {

/// What runs while memory is at its fullest.
enum class MemoryPhase { forward, backward, weight, pair, loss, optimizer };
inline constexpr std::size_t kMemoryPhases = 6;
[[nodiscard]] const char* name_of(MemoryPhase phase);

inline constexpr double kNothingRuns = -std::numeric_limits<double>::infinity();

/// Bytes of a block and one micro-batch.
struct BlockMemory {
  bool is_head = false;
  double saved = 0;    ///< on the GPU, from its F to its B
  double pending = 0;  ///< from its B to its W, where they are apart
  double forward_workspace = 0, backward_workspace = 0;
};
using StageMemory = std::vector<BlockMemory>;  // in the order of the forward pass

/// Beside what was there when the slot began.
struct SlotMemory {
  double activations = 0, workspace = 0;   ///< at the block where their sum is most
  std::array<double, kMemoryPhases> most;  ///< the largest sum, by what runs; kNothingRuns: nothing of the kind
  double left = 0;                         ///< activations behind the slot; less than 0 where it frees
};

/// A forward pass fills memory block by block and a backward pass frees it so, from the last block; of two passes that
/// overlap one fills what the other frees, so that both together hold about one and a block.
/// `forward`, `backward`: of the stages that the slot passes; those that its kind lacks are not read.
[[nodiscard]] SlotMemory slot_memory(SlotKind kind, const StageMemory& forward, const StageMemory& backward);

}  // namespace moeline

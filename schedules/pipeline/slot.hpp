// What a rank of a pipeline does at a time: one pass of a micro-batch through one stage, or two of them overlapped.
#pragma once

#include <cstdint>
#include <vector>

namespace moeline {

enum class SlotKind : std::uint8_t {
  forward,           ///< F
  backward,          ///< B: gradients of inputs and weights
  backward_input,    ///< B of the zero-bubble kind: those of the inputs alone; a W follows later
  weight,            ///< W: those of the weights
  forward_backward,  ///< F&B: a forward and a backward pass of two micro-batches, overlapped
};

/// A micro-batch at a stage. Stages count from 0 in the order in which its forward pass meets them, over all ranks.
struct Pass {
  int micro_batch = 0;
  int stage = 0;
  int chunk = 0;  ///< the part of its rank's model that the stage is, counted on that rank
};

struct Slot {
  SlotKind kind = SlotKind::forward;
  Pass forward{};   ///< of F and F&B
  Pass backward{};  ///< of B, W and F&B
};

using RankSlots = std::vector<Slot>;  // in order of execution

}  // namespace moeline

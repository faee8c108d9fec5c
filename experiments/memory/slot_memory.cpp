#include "experiments/memory/slot_memory.hpp"

#include <algorithm>

namespace moeline {
namespace {

// Blocks of a pass that takes as many steps as the longer of two, one after the other.
class PassOverSteps {
 public:
  PassOverSteps(std::size_t blocks, std::size_t steps) : blocks_(blocks), steps_(steps) {}
  [[nodiscard]] bool runs() const { return blocks_ > 0; }
  [[nodiscard]] std::size_t block(std::size_t step) const { return step * blocks_ / steps_; }
  [[nodiscard]] bool begins(std::size_t step) const { return step == 0 || block(step - 1) != block(step); }
  [[nodiscard]] bool ends(std::size_t step) const { return step + 1 == steps_ || begins(step + 1); }

 private:
  std::size_t blocks_, steps_;
};

MemoryPhase phase_of(SlotKind kind) {
  switch (kind) {
    case SlotKind::forward:
      return MemoryPhase::forward;
    case SlotKind::weight:
      return MemoryPhase::weight;
    case SlotKind::forward_backward:
      return MemoryPhase::pair;
    default:
      return MemoryPhase::backward;
  }
}

// What a block leaves when its pass backwards is done, less what it found.
double change_behind(SlotKind kind, const BlockMemory& block) {
  if (kind == SlotKind::weight) return -block.pending;
  return (has_weight(kind) ? 0 : block.pending) - block.saved;
}

void note(SlotMemory& memory, MemoryPhase phase, double activations, double workspace) {
  double& most = memory.most[static_cast<std::size_t>(phase)];
  most = std::max(most, activations + workspace);
  if (activations + workspace < memory.activations + memory.workspace) return;
  memory.activations = activations;
  memory.workspace = workspace;
}

}  // namespace

const char* name_of(MemoryPhase phase) {
  constexpr std::array<const char*, kMemoryPhases> kNames = {
      "forward pass", "backward pass", "gradients of weights", "a pair of passes", "loss", "optimizer"};
  return kNames[static_cast<std::size_t>(phase)];
}

SlotMemory slot_memory(SlotKind kind, const StageMemory& forward, const StageMemory& backward) {
  const std::size_t filled = has_forward(kind) ? forward.size() : 0,
                    freed = kind == SlotKind::forward ? 0 : backward.size();
  const std::size_t steps = std::max(filled, freed);
  const PassOverSteps forwards(filled, steps), backwards(freed, steps);
  SlotMemory memory{};
  memory.most.fill(kNothingRuns);
  for (std::size_t step = 0; step < steps; ++step) {
    double workspace = 0;
    bool is_head = false;
    if (forwards.runs()) {
      const BlockMemory& block = forward[forwards.block(step)];
      if (forwards.begins(step)) memory.left += block.saved;
      workspace += block.forward_workspace;
      is_head |= block.is_head;
    }
    const BlockMemory* back = backwards.runs() ? &backward[freed - 1 - backwards.block(step)] : nullptr;
    if (back != nullptr) {
      workspace += back->backward_workspace;
      is_head |= back->is_head;
    }
    note(memory, is_head ? MemoryPhase::loss : phase_of(kind), memory.left, workspace);
    if (back != nullptr && backwards.ends(step)) memory.left += change_behind(kind, *back);
  }
  return memory;
}

}  // namespace moeline

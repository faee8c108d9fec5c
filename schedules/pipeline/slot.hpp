// What a rank of a pipeline does at a time: one pass of a micro-batch through one stage, or two of them overlapped.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace moeline {

enum class SlotKind : std::uint8_t {
  forward,           ///< F
  backward,          ///< B: gradients of inputs and weights
  backward_input,    ///< B of the zero-bubble kind: those of the inputs alone; a W follows later
  weight,            ///< W: those of the weights
  forward_backward,  ///< F&B: a forward and a backward pass of two micro-batches, overlapped
};

[[nodiscard]] constexpr bool has_forward(SlotKind kind) {
  return kind == SlotKind::forward || kind == SlotKind::forward_backward;
}
/// Gradients of inputs, with or without those of weights.
[[nodiscard]] constexpr bool has_backward(SlotKind kind) {
  return kind != SlotKind::forward && kind != SlotKind::weight;
}
[[nodiscard]] constexpr bool has_weight(SlotKind kind) {
  return kind != SlotKind::forward && kind != SlotKind::backward_input;
}

/// As a table names it: F, B, W or F&B.
[[nodiscard]] const char* name_of(SlotKind kind);

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

/// "F 3 & B 0", of micro-batches.
[[nodiscard]] std::string title_of(const Slot& slot);
/// Micro-batch and chunk that stand for the slot: of F&B those of its forward pass.
[[nodiscard]] inline const Pass& main_pass(const Slot& slot) {
  return has_forward(slot.kind) ? slot.forward : slot.backward;
}

using RankSlots = std::vector<Slot>;  // in order of execution

// Schedules name chunks and leave counting to this: the n-th F of a chunk is of its n-th micro-batch, and so is its
// n-th B; a W is of the oldest zero-bubble B that has none yet.

/// A part of the model on this rank, and the micro-batches that pass it.
struct Chunk {
  int id = 0;
  int stage = 0;
  int first_micro_batch = 0;
};

class SlotWriter {
 public:
  /// The functions below know a chunk by its position in this list.
  explicit SlotWriter(const std::vector<Chunk>& chunks);

  void f(int chunk = 0);
  void b(int chunk = 0);
  void b_input(int chunk = 0);
  void w();
  void f_and_b(int forward_chunk, int backward_chunk);
  /// One after the other, or overlapped.
  void f_then_b(bool overlapped, int forward_chunk = 0, int backward_chunk = 0);

  /// REQUIRES: every zero-bubble B has got its W.
  [[nodiscard]] RankSlots finish() &&;

 private:
  std::vector<Pass> next_forward_, next_backward_;  // by chunk
  std::deque<Pass> without_w_;
  RankSlots slots_;
};

}  // namespace moeline

// Schedules name chunks and leave counting to this: the n-th F of a chunk is of its n-th micro-batch, and so is its
// n-th B; a W is of the oldest zero-bubble B that has none yet.
#pragma once

#include <deque>
#include <vector>

#include "schedules/pipeline/slot.hpp"

namespace moeline {

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

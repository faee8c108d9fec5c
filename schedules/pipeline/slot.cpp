#include "schedules/pipeline/slot.hpp"

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"

namespace moeline {

const char* name_of(SlotKind kind) {
  switch (kind) {
    case SlotKind::forward:
      return "F";
    case SlotKind::weight:
      return "W";
    case SlotKind::forward_backward:
      return "F&B";
    default:
      return "B";
  }
}

std::string title_of(const Slot& slot) {
  if (slot.kind == SlotKind::forward_backward) {
    return fmt::format("F {} & B {}", slot.forward.micro_batch, slot.backward.micro_batch);
  }
  return fmt::format("{} {}", name_of(slot.kind), main_pass(slot).micro_batch);
}

namespace {

Pass take(std::vector<Pass>& next, int chunk) {
  Pass& pass = next.at(static_cast<std::size_t>(chunk));
  const Pass taken = pass;
  ++pass.micro_batch;
  return taken;
}

}  // namespace

SlotWriter::SlotWriter(const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) next_forward_.push_back({chunk.first_micro_batch, chunk.stage, chunk.id});
  next_backward_ = next_forward_;
}

void SlotWriter::f(int chunk) { slots_.push_back({.kind = SlotKind::forward, .forward = take(next_forward_, chunk)}); }

void SlotWriter::b(int chunk) {
  slots_.push_back({.kind = SlotKind::backward, .backward = take(next_backward_, chunk)});
}

void SlotWriter::b_input(int chunk) {
  without_w_.push_back(take(next_backward_, chunk));
  slots_.push_back({.kind = SlotKind::backward_input, .backward = without_w_.back()});
}

void SlotWriter::w() {
  MOELINE_CHECK(!without_w_.empty(), "W before its B");
  slots_.push_back({.kind = SlotKind::weight, .backward = without_w_.front()});
  without_w_.pop_front();
}

void SlotWriter::f_and_b(int forward_chunk, int backward_chunk) {
  slots_.push_back({.kind = SlotKind::forward_backward,
                    .forward = take(next_forward_, forward_chunk),
                    .backward = take(next_backward_, backward_chunk)});
}

void SlotWriter::f_then_b(bool overlapped, int forward_chunk, int backward_chunk) {
  if (overlapped) return f_and_b(forward_chunk, backward_chunk);
  f(forward_chunk);
  b(backward_chunk);
}

RankSlots SlotWriter::finish() && {
  MOELINE_CHECK(without_w_.empty(), std::to_string(without_w_.size()) + " B without W");
  return std::move(slots_);
}

}  // namespace moeline

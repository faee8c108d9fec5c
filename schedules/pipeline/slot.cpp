#include "schedules/pipeline/slot.hpp"

#include <fmt/format.h>

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

}  // namespace moeline

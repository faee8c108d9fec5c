#include "experiments/plan_training/megatron_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace moeline {
namespace {

struct Held {
  bool embedding = false;
  int layers = 0, mtp = 0;
};

// A layer behind an MTP projection is the module's own.
Held held_by(const StageBlocks& blocks, bool& in_mtp) {
  Held held;
  for (const Block& block : blocks) {
    if (block.kind == BlockKind::embedding) held.embedding = true;
    if (block.kind == BlockKind::mtp) ++held.mtp;
    in_mtp = in_mtp || block.kind == BlockKind::mtp;
    if (is_layer(block.kind) && !in_mtp) ++held.layers;
    if (block.kind == BlockKind::head) in_mtp = false;
  }
  return held;
}

std::string times(const char* part, int count) {
  if (count == 0) return "";
  return count == 1 ? part : fmt::format("{}*{}", part, count);
}

std::string text_of(const Held& held) {
  return (held.embedding ? "E" : "") + times("t", held.layers) + times("m", held.mtp);
}

bool is_usual(const std::vector<Held>& stages) {
  return std::all_of(stages.begin(), stages.end(), [&](const Held& each) {
    const bool first = &each == &stages.front(), last = &each == &stages.back();
    return each.layers == stages.front().layers && each.embedding == first && (each.mtp == 0 || last);
  });
}

}  // namespace

std::string megatron_layout(const std::vector<StageBlocks>& stages) {
  std::vector<Held> all;
  bool in_mtp = false;
  for (const StageBlocks& blocks : stages) all.push_back(held_by(blocks, in_mtp));
  if (is_usual(all)) return "";
  std::string text;
  for (std::size_t i = 0; i + 1 < all.size();) {
    const std::string one = text_of(all[i]) + "|";
    std::size_t end = i + 1;
    while (end + 1 < all.size() && text_of(all[end]) + "|" == one) ++end;
    text += end - i > 2 ? fmt::format("({})*{}", one, end - i) : "";
    for (std::size_t each = i; each < end && end - i <= 2; ++each) text += one;
    i = end;
  }
  return text + text_of(all.back()) + "L";
}

}  // namespace moeline

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

// Three and more that are alike as one in brackets.
std::string repeated(const std::string& one, std::ptrdiff_t count) {
  if (count > 2) return fmt::format("({})*{}", one, count);
  return count == 2 ? one + one : one;
}

}  // namespace

std::string megatron_layout(const std::vector<StageBlocks>& stages) {
  std::vector<Held> all;
  bool in_mtp = false;
  for (const StageBlocks& blocks : stages) all.push_back(held_by(blocks, in_mtp));
  if (is_usual(all)) return "";
  std::vector<std::string> before_last;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) before_last.push_back(text_of(all[i]) + "|");
  std::string text;
  for (auto begin = before_last.begin(); begin != before_last.end();) {
    const auto end = std::find_if(begin, before_last.end(), [&](const std::string& each) { return each != *begin; });
    text += repeated(*begin, end - begin);
    begin = end;
  }
  return text + text_of(all.back()) + "L";
}

}  // namespace moeline

#include "experiments/memory/parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moeline {
namespace {

MemoryParts without_empty(MemoryParts parts) {
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

}  // namespace

MemoryParts parts_of(const Memory& m) {
  return without_empty({{"weights", m.weights - m.draft_model},
                        {"draft model", m.draft_model},
                        {"KV cache", m.kv_cache - m.states},
                        {"states", m.states},
                        {"activations", m.activations},
                        {"communication buffers", m.communication}});
}

MemoryParts parts_of(const StepMemory& m) {
  return without_empty({{"weights", m.weights},
                        {"gradients", m.gradients},
                        {"optimizer", m.optimizer},
                        {"activations", m.activations},
                        {"workspace", m.workspace},
                        {"communication buffers", m.communication}});
}

std::string breakdown(const MemoryParts& parts) {
  std::vector<std::string> texts;
  for (const MemoryPart& part : parts) texts.push_back(fmt::format("{} {:.1f}", part.name, gib(part.bytes)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace moeline

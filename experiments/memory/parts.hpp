// What a GPU's memory is filled with, part by part.
#pragma once

#include <string>
#include <vector>

#include "moe/memory.hpp"

namespace moeline {

/// Share of a GPU's memory that a layout which is chosen leaves to what is not counted in training: CUDA, NCCL,
/// fragmentation. Stacks of inference keep their own (memory.fraction).
inline constexpr double kMemoryReserve = 0.1;

struct MemoryPart {
  const char* name;
  double bytes;
};
/// They add up to the total; a part that a run does not have is left out.
using MemoryParts = std::vector<MemoryPart>;

/// Of one GPU in training at some instant, bytes.
struct StepMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double activations = 0;    ///< saved for backward passes
  double workspace = 0;      ///< temporaries of what runs
  double communication = 0;  ///< DeepEP's buffers
  [[nodiscard]] double total() const {
    return weights + gradients + optimizer + activations + workspace + communication;
  }
};

[[nodiscard]] MemoryParts parts_of(const Memory& memory);
[[nodiscard]] MemoryParts parts_of(const StepMemory& memory);

/// "weights 22.5, KV cache 34.3, activations 0.3, communication buffers 0.9", in GiB.
[[nodiscard]] std::string breakdown(const MemoryParts& parts);

}  // namespace moeline

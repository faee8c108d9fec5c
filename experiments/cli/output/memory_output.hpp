// "memory" in results: what a GPU holds, part by part, and what fits beside it.
#pragma once

#include "experiments/memory/inference_memory.hpp"
#include "experiments/memory/step_memory.hpp"
#include "experiments/report/fields.hpp"
#include "experiments/run/run.hpp"
#include "experiments/serve/serve.hpp"

namespace moeline {

/// "parts": each with its GiB; they add up to what the GPU holds.
[[nodiscard]] Fields<MemoryParts> parts_fields();
/// Of prefill and decode: what fits.
[[nodiscard]] Fields<Run> inference_memory_fields();
/// Of a step of training: when it is at its fullest.
[[nodiscard]] Fields<Run> training_memory_fields();
/// Of replicas that serve requests: their largest step, and the cache beside it.
[[nodiscard]] Fields<ServePool> served_memory_fields();

/// The same for people, a line or two.
[[nodiscard]] std::string memory_lines(const Run& run);
[[nodiscard]] std::string memory_line(const ServePool& pool);
/// ", in the loss (next a pair of passes, 61.2)": what runs then.
[[nodiscard]] std::string peak_phrase(const RankMemory& memory);

}  // namespace moeline

// What commands are printed of, beside a deployment.
#pragma once

#include "experiments/memory/inference_memory.hpp"
#include "experiments/plan/plan.hpp"

namespace moeline::testing {

inline Plan launched_plan() {
  const Lengths some({1000}, {1});
  return {.file = {},
          .model = "deepseek-v3",
          .hardware = {},
          .traffic = {100, some, some, 0},
          .limits = {},
          .prefill = {},
          .decode = {}};
}

/// Caches may have 15 GB beside weights of 45 and 12 of activations and buffers, of 80.
inline GpuMemory launched_memory() {
  return {.held = {.weights = 45e9, .kv_cache = 10e9, .activations = 8e9, .communication = 4e9},
          .room = 15e9,
          .capacity = 80e9};
}

}  // namespace moeline::testing

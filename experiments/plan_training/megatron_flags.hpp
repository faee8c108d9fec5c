// A layout in the flags of Megatron-LM (megatron/training/arguments.py, core_v0.16).
//
// Left out: what a layout does not say: the model's own sizes, data, optimizer, precision but for BF16 and blockwise
// FP8. What has no counterpart there is said: DualPipe, zero-bubble pipelines.
#pragma once

#include <string>
#include <vector>

#include "experiments/plan_training/layout.hpp"
#include "schedules/scenario/scenario.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

struct MegatronFlags {
  std::vector<std::string> flags;     ///< "--tensor-model-parallel-size 2"
  std::vector<std::string> notes;     ///< what they cannot say
  std::vector<std::string> stages{};  ///< "embedding, 3 dense, 1 moe", in the order of the forward pass; none: one
};

/// `scenario`: of the layout, resolved. `stages`: of its pipeline.
[[nodiscard]] MegatronFlags megatron_flags(const Layout& layout, const Scenario& scenario,
                                           const std::vector<StageBlocks>& stages);

}  // namespace moeline

// Which blocks of the model each stage of a pipeline holds.
#pragma once

#include <vector>

#include "schedules/lowering/training_phases.hpp"
#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

/// Consecutive units on `count` stages, at most ceil(units / count) on each: overlapped passes pair them one to one,
/// and what has no partner has nothing to hide communication behind. Under that bound the costliest stage is as cheap
/// as can be, and of all splits that do this the sum of squared costs is the least. REQUIRES: at least as many units.
[[nodiscard]] std::vector<StageBlocks> balanced_stages(const std::vector<StageBlocks>& units,
                                                       const std::vector<double>& costs, int count);

/// As the scenario says; balanced by the priced time of the kernels that compute.
[[nodiscard]] std::vector<StageBlocks> stages_of(TrainingPhases& phases);

}  // namespace moeline

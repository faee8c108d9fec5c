// Which blocks of the model a pipeline has to share out among its stages.
#pragma once

#include <vector>

#include "architecture/blocks.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

using StageBlocks = std::vector<Block>;

/// Of the scenario's model in the order of its forward pass; with a given number of layers, those MoE layers alone.
[[nodiscard]] std::vector<Block> training_blocks(const Scenario& scenario, const Architecture& model);

/// Blocks that a stage holds or lacks together: a layer with the embedding or MTP projection before it, or a head.
/// A pipeline has at most as many stages.
[[nodiscard]] std::vector<StageBlocks> units_of(const std::vector<Block>& blocks);

/// Stages of the scenario's pipeline, over all ranks.
[[nodiscard]] int stage_count(const Scenario& scenario);

}  // namespace moeline

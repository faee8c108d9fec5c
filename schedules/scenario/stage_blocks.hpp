// Which blocks of the model a pipeline has to share out among its stages.
#pragma once

#include <string>
#include <vector>

#include "architecture/blocks.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {

using StageBlocks = std::vector<Block>;

/// Of the scenario's model in the order of its forward pass; with a given number of layers, those MoE layers alone.
[[nodiscard]] std::vector<Block> training_blocks(const Scenario& scenario, const Architecture& model);

/// Blocks that a stage holds or lacks together: a layer with the embedding or MTP projection before it, or a head.
/// Where there are more `stages`, the embedding is a unit of its own. A pipeline has at most as many stages as units.
[[nodiscard]] std::vector<StageBlocks> units_of(const std::vector<Block>& blocks, int stages);

/// Stages of the scenario's pipeline, over all ranks.
[[nodiscard]] int stage_count(const Scenario& scenario);

/// As many decoder layers as listed on each stage: the embedding goes with the first, heads and MTP with the last. That
/// may be all that these have.
[[nodiscard]] std::vector<StageBlocks> given_stages(const std::vector<Block>& blocks, const std::vector<int>& layers);

/// What a step of prefill or decode consists of: the whole model and, for each drafted token, an MTP module; or main
/// layers alone. Layers that are folded (fold.hpp) are left out.
[[nodiscard]] std::vector<Block> inference_blocks(const Setup& setup);
[[nodiscard]] std::vector<StageBlocks> inference_stages(const Setup& setup);

/// Layers of each stage of prefill or decode, as equal as they can be. Where they do not divide, some have one more, by
/// the stack's habit.
[[nodiscard]] std::vector<int> even_stages(const Setup& setup, int layers);

/// "embedding, 3 dense, 1 moe"
[[nodiscard]] std::string describe(const StageBlocks& blocks);

}  // namespace moeline

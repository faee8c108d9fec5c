// Which layers a pipeline's stages hold, as Megatron-Core reads it (--pipeline-model-parallel-layout,
// megatron/core/transformer/pipeline_parallel_layer_layout.py, core_v0.16).
#pragma once

#include <string>
#include <vector>

#include "schedules/scenario/stage_blocks.hpp"

namespace moeline {

/// "Et*3|(t*2|)*29m|L": E the embedding, t a decoder layer, m an MTP module, L head and loss, | between stages, in the
/// order of the forward pass. Empty: what Megatron does by itself, as many decoder layers on each stage, the embedding
/// before the first and MTP and loss behind the last.
[[nodiscard]] std::string megatron_layout(const std::vector<StageBlocks>& stages);

}  // namespace moeline

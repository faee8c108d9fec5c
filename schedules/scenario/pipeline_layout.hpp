// Stages as Megatron-Core writes them (--pipeline-model-parallel-layout).
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// "Et*3|(tt|)*29,m|L" as the layers of each stage: E the embedding, t a decoder layer, m an MTP layer, L the loss. `|`
/// ends a stage, `*n` repeats the layer or group before it, commas mean nothing. By PipelineParallelLayerLayout of
/// Megatron-Core (megatron/core/transformer/pipeline_parallel_layer_layout.py). Throws std::invalid_argument, saying
/// what it cannot read.
[[nodiscard]] std::vector<std::string> expanded_layout(const std::string& layout);

/// What Megatron asks of these, where there are so many decoder and MTP layers: one embedding, in the first stage; one
/// loss, in the last; every layer, MTP behind the others in one stage. Beyond that, MTP is to be with the loss, as the
/// last stage has it here. The answer says what is wrong; "": nothing.
[[nodiscard]] std::string complaint_of_layout(const std::vector<std::string>& stages, int decoders, int mtp);

/// Decoder layers of each stage.
[[nodiscard]] std::vector<int> decoders_of(const std::vector<std::string>& stages);

}  // namespace moeline

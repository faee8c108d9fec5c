// What the layers of one family have and those of others do not: each sets `layers` by keys that this family alone has.
// They come behind what read_layers.hpp reads for all, and throw SpecError on what they do not know.
#pragma once

#include "architecture/architecture.hpp"
#include "architecture/config_json.hpp"

namespace moeline {

// hybrid_layers.cpp: layers that keep a state among those that attend to all keys.
void delta_net_layers(const ModelFields& fields, Architecture& model);  ///< Qwen3-Next, Qwen3.5
void mamba_layers(const ModelFields& fields, Architecture& model);      ///< Nemotron-H and Nemotron-3
[[nodiscard]] int count_mamba_layers(const ModelFields& fields);
void kimi_delta_layers(const ModelFields& fields, Architecture& model);  ///< Kimi-Linear, Kimi-K3
void lightning_layers(const ModelFields& fields, Architecture& model);   ///< MiniMax-Text-01

// sparse_layers.cpp: attention to the keys that an indexer chooses, or to compressed ones.
void indexed_layers(const ModelFields& fields, Architecture& model);        ///< DeepSeek-V3.2, GLM-5
void block_indexed_layers(const ModelFields& fields, Architecture& model);  ///< MiniMax-M3
void compressed_layers(const ModelFields& fields, Architecture& model);     ///< DeepSeek-V4

// windowed_layers.cpp: layers that differ in what they see, in heads or in widths.
void llama4_layers(const ModelFields& fields, Architecture& model);
void gemma4_layers(const ModelFields& fields, Architecture& model);
void mimo_layers(const ModelFields& fields, Architecture& model);      ///< MiMo-V2
void shortcut_layers(const ModelFields& fields, Architecture& model);  ///< LongCat-Flash
[[nodiscard]] int count_shortcut_layers(const ModelFields& fields);
void searched_layers(const ModelFields& fields, Architecture& model);  ///< Nemotron's by architecture search

}  // namespace moeline

// The layers of a description: first as if all were alike but for what their lists say, then as their family has them.
#pragma once

#include "architecture/architecture.hpp"
#include "architecture/config_json.hpp"
#include "architecture/model_families.hpp"

namespace moeline {

inline constexpr int kWidest = 1 << 22;
inline constexpr int kMostHeads = 4096;

/// Of a value that is read, and that asks for more than is modelled.
[[noreturn]] void refuse(const ModelFields& fields, const std::string& field, const std::string& what);

/// Attention of all layers, with the windows that some have. REQUIRES num_hidden_layers and hidden_size.
void read_attention(const ModelFields& fields, const ModelFamily& family, Architecture& model);

[[nodiscard]] bool has_experts(const ModelFields& fields, const ModelFamily& family);
/// Feed-forward networks and experts, and which layers have them. REQUIRES the same.
void read_feed_forward(const ModelFields& fields, const ModelFamily& family, Architecture& model);

/// A list with one value for each layer. Throws SpecError where it has others.
[[nodiscard]] std::vector<int> one_per_layer(const ModelFields& fields, const std::string& field, int low, int high,
                                             const Architecture& model);
[[nodiscard]] std::vector<std::string> word_per_layer(const ModelFields& fields, const std::string& field,
                                                      const std::vector<std::string>& words, const Architecture& model);

// What the layers of one family have and those of others do not: each sets `layers` by keys that this family alone has.
// They come behind what read_layers.hpp reads for all, and throw SpecError on what they do not know.

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

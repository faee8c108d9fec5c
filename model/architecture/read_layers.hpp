// The layers of a description: first as if all were alike but for what their lists say, then as their family has them.
#pragma once

#include "architecture/architecture.hpp"
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

}  // namespace moeline

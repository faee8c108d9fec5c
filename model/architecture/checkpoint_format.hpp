// In which number formats a checkpoint stores its weights: quantization_config in the description, and the
// hf_quant_config.json that NVIDIA's ModelOpt writes beside it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "architecture/architecture.hpp"
#include "architecture/config_json.hpp"
#include "architecture/name_patterns.hpp"

namespace moeline {

struct StorageFormat {
  Precision type = Precision::bf16;
  double bytes = 2;  ///< per parameter, with its share of the scales
  auto operator<=>(const StorageFormat&) const = default;
};

struct CheckpointFormat {
  StorageFormat usual;                          ///< of linear layers in attention, FFNs and experts
  std::optional<StorageFormat> experts{};       ///< of routed experts, where theirs is another
  bool experts_alone = false;                   ///< all other linear layers are BF16
  NamePatterns kept;                            ///< linear layers that stay in BF16
  std::map<std::string, StorageFormat> listed;  ///< modules with a format of their own: "layers.3.mlp.experts"
  Precision kv_cache = Precision::bf16;
};

/// Embedding, LM head and router are BF16 in all of them. Throws SpecError where a format is not known, and where the
/// two files disagree.
[[nodiscard]] CheckpointFormat read_checkpoint_format(const ModelFields& fields);

/// Sets weights, expert_weights, kv_cache, stored, and the formats of every layer. REQUIRES all sizes of the model.
void store_as(const CheckpointFormat& format, Architecture& model);

/// Attention, dense layers and shared experts, or routed experts, of every layer in another format than the checkpoint.
void store_linear_as(Precision format, Architecture& model);
void store_experts_as(Precision format, Architecture& model);

}  // namespace moeline

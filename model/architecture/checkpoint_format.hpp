// In which number formats a checkpoint stores its weights: quantization_config in the description, and the
// hf_quant_config.json that NVIDIA's ModelOpt writes beside it.
#pragma once

#include "architecture/architecture.hpp"
#include "architecture/config_json.hpp"
#include "architecture/name_patterns.hpp"

namespace moeline {

struct CheckpointFormat {
  Precision type = Precision::bf16;  ///< of linear layers in attention, FFNs and experts
  double bytes = 2;                  ///< per parameter, with its share of the scales
  bool experts_alone = false;        ///< all other linear layers are BF16
  NamePatterns kept;                 ///< linear layers that stay in BF16
  Precision kv_cache = Precision::bf16;
};

/// Embedding, LM head and router are BF16 in all of them. Throws SpecError where a format is not known, where layers
/// have several, and where the two files disagree.
[[nodiscard]] CheckpointFormat read_checkpoint_format(const ModelFields& fields);

/// Sets weights, expert_weights, kv_cache and stored. REQUIRES all sizes of the model.
void store_as(const CheckpointFormat& format, Architecture& model);

/// Prices exist for BF16, FP8 and NVFP4, in routed experts also for MXFP4 and INT4. Throws SpecError at the key that named a model of
/// another format, or of several in one kind of module.
void expect_prices(const Spec& spec, const std::string& key, const Architecture& model);

}  // namespace moeline

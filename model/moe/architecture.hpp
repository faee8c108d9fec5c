// A model as its configuration file describes it. Field names are those of a Hugging Face config.json.
#pragma once

#include <filesystem>
#include <string>

namespace moeline {

/// Multi-head latent attention and routed experts beside shared ones (DeepSeek-V3's family).
struct Architecture {
  std::string name;
  int num_hidden_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;      ///< FFN of the dense layers
  int moe_intermediate_size = 0;  ///< FFN of one expert
  int n_routed_experts = 0;
  int n_shared_experts = 0;
  int num_experts_per_tok = 0;
  int first_k_dense_replace = 0;  ///< dense layers before the first MoE layer
  int n_group = 0;                ///< expert groups of the gating; one per node at full expert parallelism
  int topk_group = 0;             ///< groups a token may choose from
  int num_attention_heads = 0;
  int q_lora_rank = 0;
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  int vocab_size = 0;

  [[nodiscard]] int moe_layers() const { return num_hidden_layers - first_k_dense_replace; }
};

/// `reference`: a name in model/zoo, or the path of a YAML file with the same fields.
/// Throws SpecError (file, line, key) on unknown, missing or impossible fields.
[[nodiscard]] Architecture load_architecture(const std::string& reference,
                                             const std::filesystem::path& written_in = {});

}  // namespace moeline

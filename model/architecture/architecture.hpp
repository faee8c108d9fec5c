// A model as its configuration file describes it. Field names are those of a Hugging Face config.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/precision.hpp"

namespace moeline {

/// RMSNorm of queries and keys, with one weight per dimension of a head or of all heads.
enum class QkNorm { none, per_head, per_layer };

/// A part of one kind of module as the checkpoint stores it.
struct StoredWeights {
  std::string module;  ///< as modules() names it, or mtp_modules() where `mtp`
  bool mtp = false;
  Precision type = Precision::bf16;
  double bytes = 0;                     ///< per parameter, with its share of the scales
  double share = 0;                     ///< of the parameters in matrices
  std::vector<std::string> matrices{};  ///< that it consists of, in every layer: "o_proj"; of a part of the layers none
  bool operator==(const StoredWeights&) const = default;
};

/// A decoder of attention (MLA or GQA) and feed-forward layers, dense or routed. Fields of what a model lacks are 0.
struct Architecture {
  std::string name;
  std::string model_type;
  int num_hidden_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;      ///< FFN of the dense layers
  int moe_intermediate_size = 0;  ///< FFN of one expert
  int n_routed_experts = 0;       ///< 0: a dense model
  int n_shared_experts = 0;
  int num_experts_per_tok = 0;
  int first_k_dense_replace = 0;  ///< dense layers before the first MoE layer
  int n_group = 1;                ///< expert groups of the gating; one per node at full expert parallelism
  int topk_group = 1;             ///< groups a token may choose from
  int num_attention_heads = 0;
  int num_key_value_heads = 0;  ///< of GQA
  int head_dim = 0;             ///< of GQA
  int q_lora_rank = 0;          ///< of MLA; 0: queries are projected directly
  int kv_lora_rank = 0;         ///< of MLA
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  int vocab_size = 0;
  int num_nextn_predict_layers = 0;  ///< MTP modules, each one more MoE layer
  bool tie_word_embeddings = false;
  QkNorm qk_norm = QkNorm::none;
  bool attention_bias = false;          ///< of the query, key and value projections
  bool output_bias = false;             ///< of attention's output projection
  bool attention_sinks = false;         ///< one learned logit per head
  bool expert_bias = false;             ///< of expert projections
  bool router_bias = false;             ///< one number per expert, added to the scores
  std::vector<int> windows;             ///< sliding window of each layer in tokens, 0: full attention; empty: all full
  Precision weights = Precision::bf16;  ///< of attention, dense layers and shared experts, most of them
  Precision expert_weights = Precision::bf16;  ///< of routed experts, most of them
  Precision kv_cache = Precision::bf16;        ///< that the checkpoint asks for: bf16 or fp8
  std::vector<StoredWeights> stored;           ///< kinds of modules that are stored in other ways than these two say
  std::vector<std::string> towers;             ///< keys of what stands beside the language model and is left out

  bool operator==(const Architecture&) const = default;
  [[nodiscard]] bool is_mla() const { return kv_lora_rank > 0; }
  /// Those before the first MoE layer; of a dense model all.
  [[nodiscard]] int dense_layers() const { return num_hidden_layers - moe_layers(); }
  [[nodiscard]] int moe_layers() const { return n_routed_experts > 0 ? num_hidden_layers - first_k_dense_replace : 0; }
  /// Those that the model consists of, but for the first few: the MoE layers, or all of a dense model.
  [[nodiscard]] int main_layers() const { return n_routed_experts > 0 ? moe_layers() : num_hidden_layers; }
  [[nodiscard]] int first_main_layer() const { return num_hidden_layers - main_layers(); }
  [[nodiscard]] int window(int layer) const { return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)]; }
};

/// `reference`: a name in model/zoo, the path of a YAML file with the same fields, or an unchanged Hugging Face
/// config.json or its folder; a hf_quant_config.json beside it counts. Throws SpecError (file, line, key) on missing
/// or impossible fields, on families that are not known, and on keys that ask for what is not modelled.
[[nodiscard]] Architecture load_architecture(const std::string& reference,
                                             const std::filesystem::path& written_in = {});

}  // namespace moeline

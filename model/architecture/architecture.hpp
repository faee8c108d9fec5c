// A model as its configuration file describes it. Field names are those of a Hugging Face config.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "architecture/layers.hpp"

namespace moeline {

/// RMSNorm of queries and keys, with one weight per dimension of a head or of all heads.
enum class QkNorm { none, per_head, per_layer };

/// A part of one kind of module as the checkpoint stores it.
struct StoredWeights {
  std::string module;  ///< as modules() names it, or mtp_modules() where `mtp`
  bool mtp = false;
  Precision type = Precision::bf16;
  double bytes = 0;  ///< per parameter, with its share of the scales
  double share = 0;  ///< of the parameters in matrices
  bool operator==(const StoredWeights&) const = default;
};

/// How the checkpoint counts layers: that of attention, and of the feed-forward network behind it.
struct LayerNumbers {
  int attention = 0, ffn = 0;
  bool operator==(const LayerNumbers&) const = default;
};

/// A decoder of layers, each with attention and a feed-forward network, dense or routed, or with one of both. Fields of
/// what a model lacks are 0. Attention's are those that all layers have alike; `layers` has the rest.
struct Architecture {
  std::string name;
  std::string model_type;
  int num_hidden_layers = 0;
  std::vector<Layer> layers{};
  Layer mtp_layer{};  ///< of MTP modules, where there are any
  int hidden_size = 0;
  int intermediate_size = 0;         ///< FFN of the dense layers, the widest
  int moe_intermediate_size = 0;     ///< FFN of one expert
  int moe_latent_size = 0;           ///< what tokens are projected to for routed experts; 0: they come as they are
  int shared_intermediate_size = 0;  ///< FFN of one shared expert
  int n_routed_experts = 0;          ///< 0: a dense model
  int n_shared_experts = 0;
  int num_experts_per_tok = 0;
  int zero_expert_num = 0;      ///< beside the routed ones the router's choice has so many that compute nothing
  int n_group = 1;              ///< expert groups of the gating; one per node at full expert parallelism
  int topk_group = 1;           ///< groups a token may choose from
  int num_attention_heads = 0;  ///< of the layers that attend to all keys
  int q_lora_rank = 0;          ///< of MLA; 0: queries are projected directly
  int kv_lora_rank = 0;         ///< of MLA
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;   ///< of MLA
  int o_groups = 0;     ///< of compressed attention: parts of its output that are projected down apart,
  int o_lora_rank = 0;  ///< to so many numbers each
  int hc_mult = 1;      ///< hidden states that layers read from and write to (hyper-connections, arXiv 2409.19606)
  int attn_res_block_size = 0;  ///< layers after which a hidden state is kept that all later ones attend to; 0: none
  int vocab_size = 0;
  int num_nextn_predict_layers = 0;  ///< MTP modules
  int layers_per_draft = 1;          ///< of one module, or of the draft model in its place (draft.hpp)
  bool tie_word_embeddings = false;
  QkNorm qk_norm = QkNorm::none;
  bool attention_bias = false;                 ///< of the query, key and value projections
  bool output_bias = false;                    ///< of attention's output projection
  bool gated_ffn = true;                       ///< FFNs and experts have a gate beside the up projection
  bool shared_gate = false;                    ///< the shared expert's output is weighed, by one number per token
  bool latent_norm = false;                    ///< what routed experts of a smaller hidden size put out is normed
  bool expert_bias = false;                    ///< of expert projections
  bool router_bias = false;                    ///< one number per expert, added to the scores
  bool output_norms = false;                   ///< what attention and feed-forward networks put out is normed, too
  std::vector<LayerNumbers> numbers{};         ///< where the checkpoint's differ from the order of `layers`
  Precision weights = Precision::bf16;         ///< of attention, dense layers and shared experts, most of them
  Precision expert_weights = Precision::bf16;  ///< of routed experts, most of them
  Precision kv_cache = Precision::bf16;        ///< that the checkpoint asks for: bf16 or fp8
  std::vector<StoredWeights> stored;           ///< kinds of modules that are stored in other ways than these two say
  std::vector<std::string> towers;             ///< keys of what stands beside the language model and is left out

  bool operator==(const Architecture&) const = default;
  [[nodiscard]] bool is_mla() const { return kv_lora_rank > 0; }
  [[nodiscard]] const Layer& layer(int i) const { return layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int moe_layers() const { return moe_layers_before(num_hidden_layers); }
  [[nodiscard]] int moe_layers_before(int layer) const;
  [[nodiscard]] int dense_layers() const { return num_hidden_layers - moe_layers(); }
  /// Those that the model consists of, but for the first few: all from the first MoE layer on, or all of a dense model.
  [[nodiscard]] int main_layers() const { return num_hidden_layers - first_main_layer(); }
  [[nodiscard]] int first_main_layer() const;
  /// Numbers of a token as routed experts see it.
  [[nodiscard]] int expert_hidden_size() const { return moe_latent_size > 0 ? moe_latent_size : hidden_size; }
  /// FFN of all shared experts of a layer together.
  [[nodiscard]] double shared_width() const { return 1.0 * n_shared_experts * shared_intermediate_size; }
};

/// `reference`: a name in model/zoo, the path of a YAML file with the same fields, or an unchanged Hugging Face
/// config.json or its folder; a hf_quant_config.json beside it counts. Throws SpecError (file, line, key) on missing
/// or impossible fields, on families that are not known, and on keys that ask for what is not modelled.
[[nodiscard]] Architecture load_architecture(const std::string& reference,
                                             const std::filesystem::path& written_in = {});

}  // namespace moeline

// How large a model is: parameters of its modules, KV cache and FLOPs per token. Everything follows from the fields.
#pragma once

#include <string>
#include <vector>

#include "architecture/architecture.hpp"

namespace moeline {

/// One kind of module; counts are exact (whole numbers below 2^53).
struct Module {
  std::string name;
  double count = 0;                     ///< how many of it there are
  double matrices = 0;                  ///< parameters of one in matrices
  double vectors = 0;                   ///< parameters of one in norms, biases and sinks, kept at BF16
  double active = 1;                    ///< of `count`, the share that one token passes through
  Precision type = Precision::bf16;     ///< of the matrices, where `stored` is empty
  std::vector<StoredWeights> stored{};  ///< in which formats the matrices are, where it is more than `type` says
  LayerAttention attention{};           ///< of attention's modules

  [[nodiscard]] double parameters() const { return count * (matrices + vectors); }
  [[nodiscard]] double active_parameters() const { return active * parameters(); }
  /// Per token: two for each multiply-add of the matrices that it passes through.
  [[nodiscard]] double forward_flops() const { return 2 * active * count * matrices; }
  /// Bytes of one as it lies in memory, scales included (bytes_per_weight).
  [[nodiscard]] double bytes() const;
};

inline constexpr const char* kAttention = "attention";
inline constexpr const char* kLinearAttention = "linear attention";
inline constexpr const char* kIndexer = "indexer";
inline constexpr const char* kNormVectors = "norms";
inline constexpr const char* kResiduals = "residual connections";
inline constexpr const char* kDenseFfn = "dense FFN";
inline constexpr const char* kRouter = "router";
inline constexpr const char* kLatentProjections = "latent projections";
inline constexpr const char* kRoutedExperts = "routed experts";
inline constexpr const char* kSharedExperts = "shared experts";
inline constexpr const char* kMtpMatrix = "MTP projection";

/// Embedding, attention, norms, dense FFN, router, routed experts, shared experts, LM head; those it has, in the order
/// in which they come. Attention, one row for each kind that has weights of its own (blocks.hpp): its
/// projections with their biases, convolutions, decays, RMSNorms of latents, queries and keys, sinks. Norms: an RMSNorm
/// before each attention and each FFN, and the last one. Router: one row per expert, the gate of a shared one, and the
/// number added to its score where router_bias is set. A tied LM head is the embedding's matrix and has no row of its
/// own.
[[nodiscard]] std::vector<Module> modules(const Architecture& model);
/// Of all MTP modules together (DeepSeek-V3, section 2.2): their layers, the 2h x h projection, three RMSNorms
/// beside the layer's two. They share embedding and LM head with the model.
[[nodiscard]] std::vector<Module> mtp_modules(const Architecture& model);

/// Sum of modules(): as model cards count, without MTP.
[[nodiscard]] double parameters(const Architecture& model);
/// What one token passes through: num_experts_per_tok of the routed experts and everything else but the embedding, of
/// which it reads one row (as gpt-oss's model card counts; with the embedding, add its row of modules()).
[[nodiscard]] double active_parameters(const Architecture& model);

/// What one sequence of `tokens` tokens keeps, per layer: the latent vector and the rotary key of MLA, keys and values
/// of GQA, in the format `cache`; a layer with a sliding window or chunks keeps so many tokens only. An indexer's keys
/// are FP8 with a scale of 4 bytes (as SGLang and vLLM keep them). Layers with a state keep it and the last inputs of
/// their convolution, in BF16. MTP layers apart.
[[nodiscard]] double kv_bytes(const Architecture& model, double tokens, Precision cache = Precision::bf16);
[[nodiscard]] double kv_bytes(const Architecture& model, const LayerAttention& attention, double tokens,
                              Precision cache = Precision::bf16);
/// What one token more adds once all windows are full: layers with a sliding window, chunks or a state count nothing.
[[nodiscard]] double kv_bytes_per_token(const Architecture& model);
/// The part that does not grow: states and convolutions.
[[nodiscard]] double state_bytes(const Architecture& model);

/// Floating-point operations per token of attention's two products Q K^T and P V over the (seq_len + 1) / 2 keys that a
/// causal token sees on average, fewer where a window or a chunk ends or keys are chosen, an indexer's scores of all of
/// them included; with a state, of reading, correcting (delta rules) and writing it. All layers together.
[[nodiscard]] double attention_core_flops(const Architecture& model, double seq_len);
/// Of one layer.
[[nodiscard]] double attention_core_flops(const LayerAttention& attention, double seq_len);

/// Floating-point operations (two per multiply-add) of forward and backward pass per token, as 3 x forward, on
/// sequences of `seq_len` tokens. Forward: every matrix a token passes through (projections, router, FFNs, LM head),
/// and attention_core_flops. Left out: embedding, norms, softmax, activation functions, recomputation, MTP.
[[nodiscard]] double train_flops_per_token(const Architecture& model, double seq_len);
/// The same with all `seq_len` keys for every token, masked ones too, as some authors count.
[[nodiscard]] double train_flops_per_token_non_causal(const Architecture& model, double seq_len);

}  // namespace moeline

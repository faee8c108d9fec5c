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

  [[nodiscard]] double parameters() const { return count * (matrices + vectors); }
  [[nodiscard]] double active_parameters() const { return active * parameters(); }
  /// Per token: two for each multiply-add of the matrices that it passes through.
  [[nodiscard]] double forward_flops() const { return 2 * active * count * matrices; }
  /// Bytes of one as it lies in memory, scales included (bytes_per_weight).
  [[nodiscard]] double bytes() const;
};

inline constexpr const char* kAttention = "attention";
inline constexpr const char* kDenseFfn = "dense FFN";
inline constexpr const char* kRoutedExperts = "routed experts";
inline constexpr const char* kSharedExperts = "shared experts";

/// Embedding, attention, norms, dense FFN, router, routed experts, shared experts, LM head; those it has.
/// Attention: its projections with their biases, RMSNorms of latents, queries and keys, sinks. Norms: two RMSNorms per
/// layer and the last one. Router: one row per expert, and the number added to its score where router_bias is set.
/// A tied LM head is the embedding's matrix and has no row of its own.
[[nodiscard]] std::vector<Module> modules(const Architecture& model);
/// Of all MTP modules together (DeepSeek-V3, section 2.2): one more layer each, the 2h x h projection, three RMSNorms
/// beside the layer's two. They share embedding and LM head with the model.
[[nodiscard]] std::vector<Module> mtp_modules(const Architecture& model);

/// The format of most weights of a kind of module, named as modules() names it.
[[nodiscard]] Precision stored_format(const Architecture& model, const std::string& module);
/// Of one of its matrices, "o_proj".
[[nodiscard]] Precision stored_format(const Architecture& model, const std::string& module, const std::string& matrix);

/// Sum of modules(): as model cards count, without MTP.
[[nodiscard]] double parameters(const Architecture& model);
/// What one token passes through: num_experts_per_tok of the routed experts and everything else but the embedding, of
/// which it reads one row (as gpt-oss's model card counts; with the embedding, add its row of modules()).
[[nodiscard]] double active_parameters(const Architecture& model);

/// KV cache at BF16 of one sequence of `tokens` tokens: the latent vector and the rotary key of MLA, keys and values of
/// GQA, per layer; a layer with a sliding window keeps the window's tokens only. MTP layers apart.
[[nodiscard]] double kv_bytes(const Architecture& model, double tokens);
/// What one token more adds once all windows are full: layers with a sliding window count nothing.
[[nodiscard]] double kv_bytes_per_token(const Architecture& model);

/// Floating-point operations per token of attention's two products Q K^T and P V, all layers together, over the
/// (seq_len + 1) / 2 keys that a causal token sees on average, fewer where a window ends.
[[nodiscard]] double attention_core_flops(const Architecture& model, double seq_len);

/// Floating-point operations (two per multiply-add) of forward and backward pass per token, as 3 x forward, on
/// sequences of `seq_len` tokens. Forward: every matrix a token passes through (projections, router, FFNs, LM head),
/// and attention_core_flops. Left out: embedding, norms, softmax, activation functions, recomputation, MTP.
[[nodiscard]] double train_flops_per_token(const Architecture& model, double seq_len);
/// The same with all `seq_len` keys for every token, masked ones too, as some authors count.
[[nodiscard]] double train_flops_per_token_non_causal(const Architecture& model, double seq_len);

}  // namespace moeline

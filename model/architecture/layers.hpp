// What one layer of a model consists of: how its tokens see each other, and the feed-forward network behind that.
#pragma once

#include <string>

#include "base/precision.hpp"

namespace moeline {

enum class AttentionKind {
  none,
  gqa,         ///< heads that share keys and values in groups; kv_heads = heads: multi-head attention
  mla,         ///< multi-head latent attention (DeepSeek-V2, section 2.1)
  compressed,  ///< one latent for all heads, over a window and over tokens compressed together (DeepSeek-V4)
  delta_net,   ///< gated delta net (arXiv 2412.06464), of Qwen3-Next and Qwen3.5
  kda,         ///< Kimi delta attention, with a decay of its own for every channel (arXiv 2510.26692)
  mamba,       ///< Mamba-2 (arXiv 2405.21060)
  lightning,   ///< linear attention with one decay per head (arXiv 2401.04658), of MiniMax-Text-01
};

/// "GQA", "MLA", "gated delta net"; of GQA with as many keys as heads "MHA", and with what it attends to where that is
/// not all: "GQA, window 128", "MLA, 2048 selected keys".
struct LayerAttention;
[[nodiscard]] std::string describe(const LayerAttention& attention);

/// Those that keep a state of one size for each request, however many tokens it has seen.
[[nodiscard]] constexpr bool has_state(AttentionKind kind) { return kind >= AttentionKind::delta_net; }

/// Attention to some of the keys alone: those with the best scores of an indexer, small heads over keys of its own.
struct KeySelection {
  int heads = 0;    ///< of the indexer; 0: all keys are attended to
  int dim = 0;      ///< of one of its heads, and of its one key per token
  int top_k = 0;    ///< keys that a query attends to
  int block = 1;    ///< that many neighbours are chosen together
  bool own = true;  ///< the layer has an indexer, and does not go by the last one's choice before it
  auto operator<=>(const KeySelection&) const = default;
};

/// What decides the weights, the cache and the kernels of a layer's attention. Sizes are of the whole layer; what a
/// kind lacks is 0. With a state: `heads` of values, `kv_heads` of keys and queries (Mamba-2's groups), `qk_dim` and
/// `v_dim` of one head (Mamba-2's state size and head size); the state is heads x qk_dim x v_dim.
struct LayerAttention {
  AttentionKind kind = AttentionKind::none;
  int heads = 0;
  int kv_heads = 0;
  int qk_dim = 0;
  int v_dim = 0;
  int window = 0;                ///< sliding, tokens; 0: all keys
  int chunk = 0;                 ///< tokens see those of their own chunk alone; 0: all
  int compress_ratio = 0;        ///< tokens that are compressed into one key beyond the window; 0: none are
  int conv = 0;                  ///< tokens that the convolution before a state reaches over
  int state_bytes = 0;           ///< of one number of the state
  bool sinks = false;            ///< one learned logit per head
  bool gated = false;            ///< the output is multiplied by a projection of the input, as wide
  int gate_rank = 0;             ///< KDA's gate is projected by way of so many numbers; 0: at once
  bool keys_are_values = false;  ///< one projection for both
  KeySelection selection{};
  auto operator<=>(const LayerAttention&) const = default;
};

/// Number formats that a checkpoint stores the matrices of one layer in.
struct LayerFormats {
  Precision attention_in = Precision::bf16;   ///< of the projections before attention's core
  Precision attention_out = Precision::bf16;  ///< and of the one behind it
  Precision dense = Precision::bf16;
  Precision experts = Precision::bf16;
  Precision shared = Precision::bf16;
  auto operator<=>(const LayerFormats&) const = default;
};

struct Layer {
  LayerAttention attention{};
  bool routed = false;  ///< has experts
  bool hashed = false;  ///< which are chosen by a table of tokens, and not by their scores
  int dense_width = 0;  ///< of its feed-forward network, where it has no experts; 0: it has none
  LayerFormats formats{};
  auto operator<=>(const Layer&) const = default;

  [[nodiscard]] bool has_ffn() const { return routed || dense_width > 0; }
};

}  // namespace moeline

// The kernels of attention proper, without projections: over keys and values, to chosen keys, over a state. FLOPs and
// bytes of BF16 work; a multiply-add is two FLOP.
#pragma once

#include <string>

#include "architecture/layers.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// FlashAttention forward, causal. The last of `query_len` queries sees `kv_len` keys (a cached prefix included), each
/// query before it one less, and none more than `window` (0: no window).
///   FLOPs  2 x batch x heads x pairs x (qk_dim + v_dim); pairs: query_len x cached + query_len^2 / 2 without a window
///   bytes  queries, outputs, and the keys and values that some query sees, once each
[[nodiscard]] Operator prefill_core(const AttentionShape& shape, double window = 0);

/// Its backward: S once more, dP, dV, dQ, dK: five products where the forward has two, three of them over the query-key
/// width. Bytes as above.
[[nodiscard]] Operator prefill_backward_core(const AttentionShape& shape, double window = 0);

/// Of prompts, by cuDNN's kernels (TransformerEngine's fused attention) where the machine's sets have them.
[[nodiscard]] Operator by_cudnn(Operator core);
[[nodiscard]] bool is_by_cudnn(const Operator& core);

/// Absorbed MLA over a cache of latents: all heads share one key of `qk_dim` numbers, whose first `v_dim` are the
/// value.
///   FLOPs  2 x batch x heads x query_len x kv_len x (qk_dim + v_dim)
///   bytes  batch x (kv_len x qk_dim + query_len x heads x (qk_dim + v_dim)) x 2: the cache once, whatever query_len
/// Sequences of unequal length cost what as many of their mean length do: the kernels split them into even parts.
[[nodiscard]] Operator mla_decode_core(const AttentionShape& shape);

/// Grouped-query attention over a KV cache; `kv_len` is already limited to the window.
///   FLOPs  as above
///   bytes  batch x (kv_len x kv_heads + query_len x heads) x (qk_dim + v_dim) x 2
[[nodiscard]] Operator gqa_decode_core(const AttentionShape& shape);

/// Attention to `kv_len` keys that were chosen for each query apart: keys are read for each query, and latents' heads
/// share them.
///   FLOPs  2 x batch x query_len x heads x kv_len x (qk_dim + v_dim)
///   bytes  batch x query_len x (kv_len x kv_heads x width + heads x (qk_dim + v_dim)), where the width of a key is
///          qk_dim of a latent, whose first numbers are the value, and else qk_dim + v_dim
/// Of a prompt, neighbouring queries choose much the same keys, and a sequence's keys are read once at the least:
/// `distinct` of them, all sequences together; 0: each query its own.
///
/// Latents of a prompt go by the tables of FlashMLA's sparse prefill; tokens in decode by those of dense MLA over as
/// many keys, each query as a sequence of its own: stacks give that kernel a page for each chosen key, or one like it.
[[nodiscard]] Operator sparse_core(const AttentionShape& shape, double distinct = 0);

// Kernels of attention to chosen keys (DeepSeek-V3.2, section 2), and of hidden states in several streams
// (DeepSeek-V4's hyper-connections), with the measured families that they belong to.

/// Queries of some sequences that an indexer scores keys for. The last of `query_len` queries sees `kv_len` keys, all
/// of a sequence's see `pairs / (batch x query_len)` on average.
struct IndexShape {
  double batch = 0;
  double query_len = 0;
  double kv_len = 0;
  double pairs = 0;  ///< of a query and a key, all sequences together
  double heads = 0;  ///< of the indexer
  double dim = 0;    ///< of its heads
  double top_k = 0;  ///< keys, or blocks of keys, that each query chooses
  double block = 1;  ///< keys that have one score
  Precision precision = Precision::fp8;
};

/// Pairs where each query sees itself and all before it.
[[nodiscard]] double causal_pairs(double batch, double query_len, double kv_len);

/// Products of all heads with all keys, added up: one FP32 score for each query and each key or block of them. `keys`
/// are read, each with an FP32 scale where it is in FP8. Tables have DeepGEMM's kernels in FP8 alone.
///   FLOPs  2 x pairs x heads x dim
[[nodiscard]] Operator index_scores(const IndexShape& shape, double keys);

/// The best `top_k` scores of each query, by radix select: `m` rows, of each of which `n` are chosen. It finds in L2
/// what fits there of the scores, which were written just before. Tables have the choice of single keys.
///   bytes  all scores, and the places of those that are chosen
[[nodiscard]] Operator index_choice(const IndexShape& shape);

/// Parts of a hyper-connection: the streams mixed into a layer's input, and its output added to each.
enum class StreamPart { pre, post };
/// Of `rows` tokens of `hidden` numbers in each of `streams`.
[[nodiscard]] Operator mix_streams(StreamPart part, double rows, double hidden, double streams);

// Kernels of attention that keeps a state in the place of keys and values: FLOPs and bytes of BF16 tensors, and the
// measured families that they belong to. A multiply-add is two FLOPs.

/// `batch` sequences of `query_len` new tokens each. A head's state has qk_dim x v_dim numbers; `heads` counts values,
/// of which several may share a key.
struct StateShape {
  AttentionKind kind = AttentionKind::delta_net;
  double batch = 0;
  double query_len = 0;
  double heads = 0;
  double key_heads = 0;
  double qk_dim = 0;
  double v_dim = 0;
  double chunk = 64;       ///< tokens that a scan takes together
  double state_bytes = 4;  ///< of one number of the state

  [[nodiscard]] double tokens() const;
  [[nodiscard]] double values() const { return heads * v_dim; }     ///< of a token
  [[nodiscard]] double keys() const { return key_heads * qk_dim; }  ///< of a token; queries are as many
  [[nodiscard]] double convolved() const { return 2 * keys() + values(); }
  [[nodiscard]] double state() const { return values() * qk_dim; }  ///< numbers of a sequence
};

/// "delta_net", "kda", "mamba", "lightning".
[[nodiscard]] std::string state_name(AttentionKind kind);
/// The kind of that name, none where there is none.
[[nodiscard]] AttentionKind state_kind_named(const std::string& name);

/// Prompts through the state chunk by chunk, as matrix products. Of a chunk of C tokens, for each of its tokens and a
/// head: with queries C x qk, with values C x v, and the state's update and reading; a delta rule solves for what each
/// token adds: C x qk twice more, C x v once, and it reads the state once more.
///   bytes  tensors once, the state of each chunk written and read
[[nodiscard]] Operator state_scan(const StateShape& shape);

/// Single tokens, or a few that are verified together: the state of each sequence is read once, and written after each
/// of its tokens, so that those that are refused can be taken back.
[[nodiscard]] Operator state_update(const StateShape& shape);

/// The convolution over the last `width` tokens, whose inputs a request keeps, before a state: of prompts, or of tokens
/// that decode. Kimi delta attention convolves queries, keys and values one by one, by kernels of their own.
[[nodiscard]] Operator state_convolution(const StateShape& shape, double width, bool decodes);

}  // namespace moeline

// The attention kernel proper, without its projections: FLOPs and bytes of BF16 work. A multiply-add is two FLOPs.
#pragma once

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

}  // namespace moeline

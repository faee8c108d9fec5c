// Kernels of attention that keeps a state in the place of keys and values: FLOPs and bytes of BF16 tensors, and the
// measured families that they belong to. A multiply-add is two FLOPs.
#pragma once

#include <string>

#include "architecture/layers.hpp"
#include "moe/operator.hpp"

namespace moeline {

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

// Kernels of attention to chosen keys (DeepSeek-V3.2, section 2), and of hidden states in several streams
// (DeepSeek-V4's hyper-connections), with the measured families that they belong to.
#pragma once

#include "moe/operator.hpp"

namespace moeline {

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

}  // namespace moeline

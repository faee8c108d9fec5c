// What the two causal attention kernels share: shapes and the order of blocks.
//
// Tensors are [batch, length, heads, dim]; a query at position i sees the keys up to i + kv_len - query_len. Scores are
// scaled by 1 / sqrt(qk_dim) and live in base 2, so that the exponential is one instruction.
#pragma once

#include <cmath>

#include "tile.cuh"

namespace moeline::bench {

struct AttentionShape {
  int batch, heads, kv_heads, query_len, kv_len;
};

constexpr float kMinusInfinity = -HUGE_VALF;
constexpr float kLog2E = 1.4426950408889634f;

// Statistics of rows ([batch, heads, rows]) are padded to whole tiles of queries, forward's and backward's.
constexpr int kForwardQueries = 128;

BENCH_HOST_DEVICE int divide_up(int a, int b) { return (a + b - 1) / b; }
BENCH_HOST_DEVICE int padded_queries(int query_len) { return divide_up(query_len, kForwardQueries) * kForwardQueries; }

// What one block works on. `rank` counts tiles from the longest work to the shortest.
struct Assignment {
  int batch, head, rank;
};

// Longest work first, over as many heads at once as `heads_at_once` allows: their keys and values should fit in the L2
// cache together.
BENCH_HOST_DEVICE Assignment assign(int block, const AttentionShape& shape, int tiles, int heads_at_once) {
  const int heads = shape.batch * shape.heads;
  const int first = block / (tiles * heads_at_once) * heads_at_once;
  const int at_once = heads - first < heads_at_once ? heads - first : heads_at_once;
  const int inside = block - first * tiles;
  const int head = first + inside % at_once;
  return {head / shape.heads, head % shape.heads, inside / at_once};
}

BENCH_DEVICE Assignment assign_block(int block, const AttentionShape& shape, int tiles, int heads_at_once) {
  const Assignment work = assign(block, shape, tiles, heads_at_once);
  return {same_in_warp(work.batch), same_in_warp(work.head), same_in_warp(work.rank)};
}

// About half of an L2 cache, which on these machines is 40 to 126 MB.
inline int heads_at_once(const AttentionShape& shape, int qk_dim, int v_dim) {
  const std::int64_t bytes_of_head = std::int64_t{2} * shape.kv_len * (qk_dim + v_dim) * shape.kv_heads / shape.heads;
  const std::int64_t fitting = 20'000'000 / bytes_of_head;
  const int heads = shape.batch * shape.heads;
  return fitting < 1 ? 1 : fitting > heads ? heads : static_cast<int>(fitting);
}

// The index of (batch, position, head, 0) in a tensor [batch, length, heads, dim].
BENCH_HOST_DEVICE std::int64_t offset_of(int batch, int length, int position, int heads, int head, int dim) {
  return ((std::int64_t{batch} * length + position) * heads + head) * dim;
}

}  // namespace moeline::bench

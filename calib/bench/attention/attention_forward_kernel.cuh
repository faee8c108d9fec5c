// Causal attention: a block takes 128 queries of one head and passes over the keys, keeping for each query the maximum
// and the sum of the softmax so far (Dao et al., arXiv:2205.14135 and arXiv:2307.08691).
//
// Each of four warps owns 32 queries, so an operand read from shared memory serves two products. Keys and values have
// one buffer each: values travel while scores are computed, the next keys while values are summed. Two blocks then fit
// an SM, and one computes while the other waits.
#pragma once

#include "attention.cuh"

namespace moeline::bench {

struct ForwardArguments {
  AttentionShape shape;
  int heads_at_once;
  const Bf16 *query, *key, *value;
  Bf16* output;
  float* log_sum;  // of each row's exponentials, in base 2: [batch, heads, padded_queries]
};

template <int kQkDim, int kVDim>
struct ForwardTile {
  static constexpr int kThreads = 128;
  static constexpr int kQueries = kForwardQueries;
  static constexpr int kKeys = 64;
  static constexpr SharedAddress kKeyTile = tile_bytes(kQueries, kQkDim);  // the queries lie before it
  static constexpr SharedAddress kValueTile = kKeyTile + tile_bytes(kKeys, kQkDim);
  static constexpr SharedAddress kSharedBytes = kValueTile + tile_bytes(kKeys, kVDim);
};

constexpr int kForwardParts = 2;  // 16 queries each, of a warp
constexpr int kScoreBlocks = 8;   // 8 keys each

using ForwardScores = float[kForwardParts][kScoreBlocks][4];
using ForwardWeights = Fragment[kForwardParts][kScoreBlocks / 2];

template <int kQkDim>
BENCH_DEVICE void score(ForwardScores& scores, SharedAddress query, SharedAddress key, int lane) {
  BENCH_UNROLL_BY(4)
  for (int k = 0; k < kQkDim; k += 16) {
    Fragment a[kForwardParts];
    BENCH_UNROLL
    for (int part = 0; part < kForwardParts; ++part) load_matrices(a[part], square<kQkDim>(query, part * 16, k, lane));
    BENCH_UNROLL
    for (int n = 0; n < kScoreBlocks; n += 2) {
      Fragment b;
      load_matrices(b, square<kQkDim>(key, n * 8, k, lane));
      BENCH_UNROLL
      for (int part = 0; part < kForwardParts; ++part) {
        multiply_add(scores[part][n], a[part], b[0], b[2]);
        multiply_add(scores[part][n + 1], a[part], b[1], b[3]);
      }
    }
  }
}

// `last_visible`: of the warp's first query, counted from the tile's first key.
BENCH_DEVICE void mask(ForwardScores& scores, int last_visible, int lane) {
  BENCH_UNROLL
  for (int part = 0; part < kForwardParts; ++part) {
    BENCH_UNROLL
    for (int n = 0; n < kScoreBlocks; ++n) {
      BENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int query = part * 16 + lane / 4 + i / 2 * 8, key = n * 8 + lane % 4 * 2 + i % 2;
        if (key > last_visible + query) scores[part][n][i] = kMinusInfinity;
      }
    }
  }
}

BENCH_DEVICE void pack(ForwardWeights& weights, const ForwardScores& scores) {
  BENCH_UNROLL
  for (int part = 0; part < kForwardParts; ++part) {
    BENCH_UNROLL
    for (int n = 0; n < kScoreBlocks; n += 2) pack_operand(weights[part][n / 2], scores[part][n], scores[part][n + 1]);
  }
}

// One of a lane's rows: what the softmax knows of it so far.
struct RowStatistics {
  float maximum = kMinusInfinity;  // before scaling
  float sum = 0;                   // over the lane's own columns
};

// A warp's 32 queries.
template <int kVDim>
struct ForwardState {
  float output[kForwardParts][kVDim / 8][4] = {};  // not yet divided by the sums
  RowStatistics rows[kForwardParts][2];

  // Turns the scores of a row to exponentials and rescales what was summed under its old maximum.
  BENCH_DEVICE void exponentiate_row(ForwardScores& scores, int part, int half, float scale_log2) {
    RowStatistics& row = rows[part][half];
    float maximum = row.maximum;
    BENCH_UNROLL
    for (int n = 0; n < kScoreBlocks; ++n)
      maximum = fmaxf(maximum, fmaxf(scores[part][n][2 * half], scores[part][n][2 * half + 1]));
    maximum = row_max(maximum);  // finite: the first tile holds key 0, which every query sees
    const float rescale = exp2_fast((row.maximum - maximum) * scale_log2);
    row.maximum = maximum;
    row.sum *= rescale;
    BENCH_UNROLL
    for (int n = 0; n < kScoreBlocks; ++n) {
      BENCH_UNROLL
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[part][n][i] = exp2_fast(fmaf(scores[part][n][i], scale_log2, -maximum * scale_log2));
        row.sum += scores[part][n][i];
      }
    }
    BENCH_UNROLL
    for (int n = 0; n < kVDim / 8; ++n) {
      output[part][n][2 * half] *= rescale;
      output[part][n][2 * half + 1] *= rescale;
    }
  }

  BENCH_DEVICE void exponentiate(ForwardScores& scores, float scale_log2) {
    BENCH_UNROLL
    for (int row = 0; row < 2 * kForwardParts; ++row) exponentiate_row(scores, row / 2, row % 2, scale_log2);
  }

  BENCH_DEVICE void add_values(const ForwardWeights& weights, SharedAddress value, int lane) {
    BENCH_UNROLL
    for (int k = 0; k < kScoreBlocks / 2; ++k) {
      BENCH_UNROLL
      for (int n = 0; n < kVDim / 8; n += 2) {
        Fragment b;
        load_matrices_transposed(b, square<kVDim>(value, k * 16, n * 8, lane));
        BENCH_UNROLL
        for (int part = 0; part < kForwardParts; ++part) {
          multiply_add(output[part][n], weights[part][k], b[0], b[1]);
          multiply_add(output[part][n + 1], weights[part][k], b[2], b[3]);
        }
      }
    }
  }

  BENCH_DEVICE void write(const ForwardArguments& arguments, const Assignment& work, int first_query, float scale_log2,
                          int lane) const {
    BENCH_UNROLL
    for (int row = 0; row < 2 * kForwardParts; ++row)
      write_row(arguments, work, first_query + row * 8 + lane / 4, row / 2, row % 2, scale_log2, lane);
  }

  BENCH_DEVICE void write_row(const ForwardArguments& arguments, const Assignment& work, int query, int part, int half,
                              float scale_log2, int lane) const {
    const AttentionShape& shape = arguments.shape;
    const float sum = row_sum(rows[part][half].sum), inverse = 1 / sum;
    if (lane % 4 == 0) {
      const std::int64_t first = std::int64_t{work.batch * shape.heads + work.head} * padded_queries(shape.query_len);
      arguments.log_sum[first + query] = rows[part][half].maximum * scale_log2 + log2f(sum);
    }
    if (query >= shape.query_len) return;
    Bf16* target = arguments.output + offset_of(work.batch, shape.query_len, query, shape.heads, work.head, kVDim);
    BENCH_UNROLL
    for (int n = 0; n < kVDim / 8; ++n) {
      const float* pair = output[part][n] + 2 * half;
      store_wide(target + n * 8 + lane % 4 * 2, pack_bf16(pair[0] * inverse, pair[1] * inverse));
    }
  }
};

template <int kQkDim, int kVDim>
__global__ void __launch_bounds__(128, 2) attention_forward(ForwardArguments arguments) {
  using Tile = ForwardTile<kQkDim, kVDim>;
  const AttentionShape& shape = arguments.shape;
  const int tiles = divide_up(shape.query_len, Tile::kQueries);
  const Assignment work = assign_block(static_cast<int>(blockIdx.x), shape, tiles, arguments.heads_at_once);
  const int first_query = (tiles - 1 - work.rank) * Tile::kQueries;  // the last tile sees the most keys
  const int last_query =
      first_query + Tile::kQueries < shape.query_len ? first_query + Tile::kQueries : shape.query_len;
  const int visible = shape.kv_len - shape.query_len + 1;  // keys that query 0 sees
  const int end = last_query - 1 + visible;
  const int kv_head = work.head / (shape.heads / shape.kv_heads);

  const SharedAddress query_tile = shared_memory(), key_tile = query_tile + Tile::kKeyTile,
                      value_tile = query_tile + Tile::kValueTile;
  TileStream<Tile::kQueries, kQkDim, Tile::kThreads> queries(
      arguments.query + offset_of(work.batch, shape.query_len, first_query, shape.heads, work.head, kQkDim),
      shape.heads * kQkDim, shape.query_len - first_query);
  TileStream<Tile::kKeys, kQkDim, Tile::kThreads> keys(
      arguments.key + offset_of(work.batch, shape.kv_len, 0, shape.kv_heads, kv_head, kQkDim), shape.kv_heads * kQkDim,
      shape.kv_len);
  TileStream<Tile::kKeys, kVDim, Tile::kThreads> values(
      arguments.value + offset_of(work.batch, shape.kv_len, 0, shape.kv_heads, kv_head, kVDim), shape.kv_heads * kVDim,
      shape.kv_len);
  queries.copy(query_tile);
  keys.copy(key_tile);

  const int lane = static_cast<int>(threadIdx.x) % 32,
            warp_query = same_in_warp(static_cast<int>(threadIdx.x) / 32 * 32);
  const float scale_log2 = kLog2E / sqrtf(static_cast<float>(kQkDim));
  ForwardState<kVDim> state;
  for (int first_key = 0; first_key < end; first_key += Tile::kKeys) {
    wait_copies();
    synchronize_block();  // the keys are here, and no warp reads values any more
    values.copy(value_tile);
    ForwardScores scores = {};
    score<kQkDim>(scores, query_tile + tile_bytes(warp_query, kQkDim), key_tile, lane);
    const int last_visible = first_query + visible - 1 - first_key;
    if (last_visible < Tile::kKeys - 1) mask(scores, last_visible + warp_query, lane);
    state.exponentiate(scores, scale_log2);
    ForwardWeights weights;
    pack(weights, scores);
    wait_copies();
    synchronize_block();  // the values are here, and no warp reads keys any more
    if (first_key + Tile::kKeys < end) keys.copy(key_tile);
    state.add_values(weights, value_tile, lane);
  }
  state.write(arguments, work, first_query + warp_query, scale_log2, lane);
}

}  // namespace moeline::bench

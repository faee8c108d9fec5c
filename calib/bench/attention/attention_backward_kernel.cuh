// Gradients of causal attention (Dao, arXiv:2307.08691, section 3.1.2), in three kernels: dot products of output and
// output gradient for every query, the main pass over blocks of keys, and the conversion of what it gathered in FP32.
//
// A block of the main kernel takes 128 keys of one head and passes over the queries that see them; each of eight warps
// owns 16 keys and keeps their gradients in registers. Scores are computed transposed, keys down and queries across, so
// that weights and score gradients are operands of the key and value gradients as they stand. Only the query gradients
// need what other warps hold: score gradients go through shared memory once, and sums to the L2 cache by atomics.
#pragma once

#include "attention.cuh"

namespace moeline::bench {

struct BackwardArguments {
  AttentionShape shape;
  int heads_at_once;
  const Bf16 *query, *key, *value, *output, *output_gradient;
  const float* log_sum;               // as the forward kernel leaves it
  float* output_dot;                  // output times its gradient, for each query; padded as log_sum
  float* query_sum;                   // [batch, query_len, heads, qk_dim], not yet scaled
  Bf16 *key_by_head, *value_by_head;  // gradients for each query head; the final ones where no heads share keys
  Bf16 *query_gradient, *key_gradient, *value_gradient;
};

constexpr int kBackwardKeys = 128;
constexpr int kBackwardQueries = 64;

template <int kQkDim, int kVDim>
struct BackwardTile {
  static constexpr int kThreads = 256;
  static constexpr int kKeys = kBackwardKeys;
  static constexpr int kQueries = kBackwardQueries;
  static constexpr SharedAddress kKeyTile = 0;
  static constexpr SharedAddress kValueTile = kKeyTile + tile_bytes(kKeys, kQkDim);
  static constexpr SharedAddress kScoreTile = kValueTile + tile_bytes(kKeys, kVDim);  // gradients, keys down
  static constexpr SharedAddress kStages = kScoreTile + tile_bytes(kKeys, kQueries);
  // A stage: what comes with 64 queries.
  static constexpr SharedAddress kQueryTile = 0;
  static constexpr SharedAddress kGradientTile = kQueryTile + tile_bytes(kQueries, kQkDim);
  static constexpr SharedAddress kLogSum = kGradientTile + tile_bytes(kQueries, kVDim);
  static constexpr SharedAddress kOutputDot = kLogSum + kQueries * 4;
  static constexpr SharedAddress kStageBytes = kOutputDot + kQueries * 4;
  static constexpr SharedAddress kSharedBytes = kStages + 2 * kStageBytes;
};

// --- Before

constexpr int kRowsPerBlock = 8;  // a warp each
constexpr int kPrepareThreads = 32 * kRowsPerBlock;

// Grid: padded rows of all heads over kRowsPerBlock. Also clears what the main kernel adds to.
template <int kQkDim, int kVDim>
__global__ void __launch_bounds__(kPrepareThreads) attention_backward_prepare(BackwardArguments arguments) {
  const AttentionShape& shape = arguments.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int block = static_cast<int>(blockIdx.x), blocks_of_head = padded_queries(shape.query_len) / kRowsPerBlock;
  const int query = block % blocks_of_head * kRowsPerBlock + warp, head = block / blocks_of_head;
  float sum = 0;
  if (query < shape.query_len) {
    const std::int64_t row = offset_of(head / shape.heads, shape.query_len, query, shape.heads, head % shape.heads, 1);
    for (int i = lane * 4; i < kVDim; i += 128) {
      const auto output = load_wide<Bf16x4>(arguments.output + row * kVDim + i);
      const auto gradient = load_wide<Bf16x4>(arguments.output_gradient + row * kVDim + i);
      for (int j = 0; j < 4; ++j) sum += element(output.pairs[j / 2], j % 2) * element(gradient.pairs[j / 2], j % 2);
    }
    for (int i = lane * 4; i < kQkDim; i += 128) store_wide(arguments.query_sum + row * kQkDim + i, Float4{});
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += shuffle_xor(sum, lanes);
  if (lane == 0) arguments.output_dot[std::int64_t{block} * kRowsPerBlock + warp] = sum;
}

// --- Main

constexpr int kQueryBlocks = 8;  // 8 queries each, of a tile

using BackwardScores = float[kQueryBlocks][4];       // a warp's 16 keys down, 64 queries across
using BackwardWeights = Fragment[kQueryBlocks / 2];  // the same as operand a

// scores += own (16 rows) * other^T (64 rows)
template <int kDim>
BENCH_DEVICE void score_transposed(BackwardScores& scores, SharedAddress own, SharedAddress other, int lane) {
  BENCH_UNROLL_BY(4)
  for (int k = 0; k < kDim; k += 16) {
    Fragment a;
    load_matrices(a, square<kDim>(own, 0, k, lane));
    BENCH_UNROLL
    for (int n = 0; n < kQueryBlocks; n += 2) {
      Fragment b;
      load_matrices(b, square<kDim>(other, n * 8, k, lane));
      multiply_add(scores[n], a, b[0], b[2]);
      multiply_add(scores[n + 1], a, b[1], b[3]);
    }
  }
}

// sum (16 keys by kDim) += weights (16 keys by 64 queries) * rows (64 queries by kDim)
template <int kDim>
BENCH_DEVICE void add_rows(float (&sum)[kDim / 8][4], const BackwardWeights& weights, SharedAddress rows, int lane) {
  BENCH_UNROLL
  for (int k = 0; k < kQueryBlocks / 2; ++k) {
    BENCH_UNROLL
    for (int n = 0; n < kDim / 8; n += 2) {
      Fragment b;
      load_matrices_transposed(b, square<kDim>(rows, k * 16, n * 8, lane));
      multiply_add(sum[n], weights[k], b[0], b[1]);
      multiply_add(sum[n + 1], weights[k], b[2], b[3]);
    }
  }
}

BENCH_DEVICE void pack(BackwardWeights& weights, const BackwardScores& scores) {
  BENCH_UNROLL
  for (int n = 0; n < kQueryBlocks; n += 2) pack_operand(weights[n / 2], scores[n], scores[n + 1]);
}

// Scores become the softmax's weights. `first_visible`: the tile's first query that sees the warp's first key, counted
// from the tile's first query; not above 0 where all see all keys.
BENCH_DEVICE void weigh(BackwardScores& scores, SharedAddress log_sum, float scale_log2, int first_visible, int lane) {
  BENCH_UNROLL
  for (int n = 0; n < kQueryBlocks; ++n) {
    float row[2];
    load_shared_pair(log_sum + static_cast<SharedAddress>(n * 8 + lane % 4 * 2) * 4, row[0], row[1]);
    BENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int key = lane / 4 + i / 2 * 8, query = n * 8 + lane % 4 * 2 + i % 2;
      const bool visible = query >= first_visible + key;
      scores[n][i] = visible ? exp2_fast(fmaf(scores[n][i], scale_log2, -row[i % 2])) : 0;
    }
  }
}

// Gradients of the weights become gradients of the scores; the weights come as they were packed.
BENCH_DEVICE void differentiate(BackwardScores& gradients, const BackwardWeights& weights, SharedAddress output_dot,
                                int lane) {
  BENCH_UNROLL
  for (int n = 0; n < kQueryBlocks; ++n) {
    float row[2];
    load_shared_pair(output_dot + static_cast<SharedAddress>(n * 8 + lane % 4 * 2) * 4, row[0], row[1]);
    BENCH_UNROLL
    for (int i = 0; i < 4; ++i)
      gradients[n][i] = element(weights[n / 2][n % 2 * 2 + i / 2], i % 2) * (gradients[n][i] - row[i % 2]);
  }
}

BENCH_DEVICE void store_scores(SharedAddress tile, const BackwardWeights& scores, int first_key, int lane) {
  BENCH_UNROLL
  for (int n = 0; n < kQueryBlocks; ++n) {
    BENCH_UNROLL
    for (int half = 0; half < 2; ++half)
      store_shared(pair_address<kQueryBlocks * 8>(tile, first_key + half * 8, n * 8, lane),
                   scores[n / 2][n % 2 * 2 + half]);
  }
}

// 32 queries by a quarter of the columns.
template <int kQkDim>
struct QueryGradient {
  static constexpr int kColumns = kQkDim / 4;
  float sum[2][kColumns / 8][4] = {};

  // sum = score gradients (128 keys by 64 queries, of which 32)^T * keys (128 by kQkDim, of which kColumns)
  BENCH_DEVICE void multiply(SharedAddress scores, SharedAddress keys, int first_query, int first_column, int lane) {
    BENCH_UNROLL
    for (int k = 0; k < kBackwardKeys; k += 16) {
      Fragment a[2];
      BENCH_UNROLL
      for (int part = 0; part < 2; ++part) {
        Fragment m;
        load_matrices_transposed(m, square<kBackwardQueries>(scores, k, first_query + part * 16, lane));
        a[part][0] = m[0], a[part][1] = m[2], a[part][2] = m[1], a[part][3] = m[3];  // stored with keys down
      }
      BENCH_UNROLL
      for (int n = 0; n < kColumns / 8; n += 2) {
        Fragment b;
        load_matrices_transposed(b, square<kQkDim>(keys, k, first_column + n * 8, lane));
        BENCH_UNROLL
        for (int part = 0; part < 2; ++part) {
          multiply_add(sum[part][n], a[part], b[0], b[1]);
          multiply_add(sum[part][n + 1], a[part], b[2], b[3]);
        }
      }
    }
  }

  // `target`: the lane's first element; rows lie `pitch` elements apart.
  BENCH_DEVICE void add_to(float* target, int pitch, int valid_rows) const {
    BENCH_UNROLL
    for (int row = 0; row < 4; ++row) {
      if (row * 8 >= valid_rows) return;
      BENCH_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        const float* pair = sum[row / 2][n] + row % 2 * 2;
        atomic_add_pair(target + row * 8 * pitch + n * 8, pair[0], pair[1]);
      }
    }
  }
};

// 16 rows of a gradient, `pitch` elements apart; `target`: the lane's first element.
template <int kDim>
BENCH_DEVICE void write_rows(Bf16* target, int pitch, const float (&sum)[kDim / 8][4], float scale, int valid_rows) {
  BENCH_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (half * 8 >= valid_rows) return;
    BENCH_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      const float* pair = sum[n] + half * 2;
      store_wide(target + half * 8 * pitch + n * 8, pack_bf16(pair[0] * scale, pair[1] * scale));
    }
  }
}

// 64 floats, by the first 16 threads from `first_thread` on.
BENCH_DEVICE void copy_statistics(SharedAddress target, const float* source, int first_thread) {
  const int i = static_cast<int>(threadIdx.x) - first_thread;
  if (i >= 0 && i < 16) copy_async(target + static_cast<SharedAddress>(i * 16), source + i * 4, true);
}

template <int kQkDim, int kVDim>
__global__ void __launch_bounds__(256, 1) attention_backward(BackwardArguments arguments) {
  using Tile = BackwardTile<kQkDim, kVDim>;
  const AttentionShape& shape = arguments.shape;
  const int key_tiles = divide_up(shape.kv_len, Tile::kKeys);
  const Assignment work = assign_block(static_cast<int>(blockIdx.x), shape, key_tiles, arguments.heads_at_once);
  const int first_key = work.rank * Tile::kKeys;                    // the first keys are seen by the most queries
  const int hidden = first_key - (shape.kv_len - shape.query_len);  // the first query that sees the first key
  const int first_tile = hidden > 0 ? hidden / Tile::kQueries : 0;
  const int query_tiles = divide_up(shape.query_len, Tile::kQueries);
  const int kv_head = work.head / (shape.heads / shape.kv_heads);
  const std::int64_t statistics = std::int64_t{work.batch * shape.heads + work.head} * padded_queries(shape.query_len);
  const std::int64_t queries = offset_of(work.batch, shape.query_len, 0, shape.heads, work.head, 1);
  const SharedAddress shared = shared_memory();

  TileStream<Tile::kKeys, kQkDim, Tile::kThreads>(
      arguments.key + offset_of(work.batch, shape.kv_len, first_key, shape.kv_heads, kv_head, kQkDim),
      shape.kv_heads * kQkDim, shape.kv_len - first_key)
      .copy(shared + Tile::kKeyTile);
  TileStream<Tile::kKeys, kVDim, Tile::kThreads>(
      arguments.value + offset_of(work.batch, shape.kv_len, first_key, shape.kv_heads, kv_head, kVDim),
      shape.kv_heads * kVDim, shape.kv_len - first_key)
      .copy(shared + Tile::kValueTile);
  const int first_query = first_tile * Tile::kQueries;
  const std::int64_t first_row = queries + std::int64_t{first_query} * shape.heads;
  TileStream<Tile::kQueries, kQkDim, Tile::kThreads> query(arguments.query + first_row * kQkDim, shape.heads * kQkDim,
                                                           shape.query_len - first_query);
  TileStream<Tile::kQueries, kVDim, Tile::kThreads> output_gradient(arguments.output_gradient + first_row * kVDim,
                                                                    shape.heads * kVDim, shape.query_len - first_query);
  const auto copy_stage = [&](int tile) {
    const SharedAddress stage = shared + Tile::kStages + static_cast<SharedAddress>(tile % 2) * Tile::kStageBytes;
    query.copy(stage + Tile::kQueryTile);
    output_gradient.copy(stage + Tile::kGradientTile);
    copy_statistics(stage + Tile::kLogSum, arguments.log_sum + statistics + tile * Tile::kQueries, 0);
    copy_statistics(stage + Tile::kOutputDot, arguments.output_dot + statistics + tile * Tile::kQueries, 16);
  };
  copy_stage(first_tile);

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = same_in_warp(static_cast<int>(threadIdx.x) / 32);
  const SharedAddress own_keys = shared + Tile::kKeyTile + tile_bytes(warp * 16, kQkDim);
  const SharedAddress own_values = shared + Tile::kValueTile + tile_bytes(warp * 16, kVDim);
  const float scale = 1 / sqrtf(static_cast<float>(kQkDim));
  float key_sum[kQkDim / 8][4] = {}, value_sum[kVDim / 8][4] = {};
  for (int tile = first_tile; tile < query_tiles; ++tile) {
    const SharedAddress stage = shared + Tile::kStages + static_cast<SharedAddress>(tile % 2) * Tile::kStageBytes;
    wait_copies();
    synchronize_block();  // the stage is here, and no warp reads the other stage or score gradients any more
    if (tile + 1 < query_tiles) copy_stage(tile + 1);
    BackwardWeights packed;
    {
      BackwardScores scores = {};
      score_transposed<kQkDim>(scores, own_keys, stage + Tile::kQueryTile, lane);
      weigh(scores, stage + Tile::kLogSum, scale * kLog2E, hidden + warp * 16 - tile * Tile::kQueries, lane);
      pack(packed, scores);
    }
    add_rows<kVDim>(value_sum, packed, stage + Tile::kGradientTile, lane);
    {
      BackwardScores gradients = {};
      score_transposed<kVDim>(gradients, own_values, stage + Tile::kGradientTile, lane);
      differentiate(gradients, packed, stage + Tile::kOutputDot, lane);
      pack(packed, gradients);
    }
    store_scores(shared + Tile::kScoreTile, packed, warp * 16, lane);
    add_rows<kQkDim>(key_sum, packed, stage + Tile::kQueryTile, lane);
    synchronize_block();  // all score gradients are there
    // Eight warps share out the query gradients: two times 32 queries, four times a quarter of the columns.
    const int query_of_tile = warp / 4 * 32, column = warp % 4 * (kQkDim / 4);
    const int row = tile * Tile::kQueries + query_of_tile + lane / 4;
    QueryGradient<kQkDim> gradient;
    gradient.multiply(shared + Tile::kScoreTile, shared + Tile::kKeyTile, query_of_tile, column, lane);
    gradient.add_to(arguments.query_sum + (queries + std::int64_t{row} * shape.heads) * kQkDim + column + lane % 4 * 2,
                    shape.heads * kQkDim, shape.query_len - row);
  }

  const int key = first_key + warp * 16 + lane / 4;
  const std::int64_t row = offset_of(work.batch, shape.kv_len, key, shape.heads, work.head, 1);
  write_rows<kQkDim>(arguments.key_by_head + row * kQkDim + lane % 4 * 2, shape.heads * kQkDim, key_sum, scale,
                     shape.kv_len - key);
  write_rows<kVDim>(arguments.value_by_head + row * kVDim + lane % 4 * 2, shape.heads * kVDim, value_sum, 1,
                    shape.kv_len - key);
}

// --- After

constexpr int kFinishThreads = 256;  // four elements each

template <int kQkDim>
BENCH_DEVICE void scale_sum(Bf16* target, const float* sum, std::int64_t i) {
  const auto four = load_wide<Float4>(sum + i * 4);
  const float scale = 1 / sqrtf(static_cast<float>(kQkDim));
  store_wide(target + i * 4, Bf16x4{{pack_bf16(four.at[0] * scale, four.at[1] * scale),
                                     pack_bf16(four.at[2] * scale, four.at[3] * scale)}});
}

// Four elements of a gradient as the sum of those of the heads that share them.
template <int kDim>
BENCH_DEVICE void sum_heads(Bf16* target, const Bf16* by_head, std::int64_t i, int sharing) {
  const std::int64_t row = i * 4 / kDim, column = i * 4 % kDim;
  float sum[4] = {};
  for (int head = 0; head < sharing; ++head) {
    const auto four = load_wide<Bf16x4>(by_head + (row * sharing + head) * kDim + column);
    for (int j = 0; j < 4; ++j) sum[j] += element(four.pairs[j / 2], j % 2);
  }
  store_wide(target + i * 4, Bf16x4{{pack_bf16(sum[0], sum[1]), pack_bf16(sum[2], sum[3])}});
}

template <int kQkDim, int kVDim>
__global__ void __launch_bounds__(kFinishThreads) attention_backward_finish(BackwardArguments arguments) {
  const AttentionShape& shape = arguments.shape;
  const int sharing = shape.heads / shape.kv_heads;
  const std::int64_t rows = std::int64_t{shape.batch} * shape.query_len * shape.heads;
  const std::int64_t kv_rows = std::int64_t{shape.batch} * shape.kv_len * shape.kv_heads;
  std::int64_t i = std::int64_t{blockIdx.x} * kFinishThreads + threadIdx.x;
  if (i < rows * kQkDim / 4) return scale_sum<kQkDim>(arguments.query_gradient, arguments.query_sum, i);
  i -= rows * kQkDim / 4;
  if (sharing == 1) return;
  if (i < kv_rows * kQkDim / 4) return sum_heads<kQkDim>(arguments.key_gradient, arguments.key_by_head, i, sharing);
  i -= kv_rows * kQkDim / 4;
  if (i < kv_rows * kVDim / 4) sum_heads<kVDim>(arguments.value_gradient, arguments.value_by_head, i, sharing);
}

// Blocks of the three kernels.
struct BackwardGrids {
  unsigned prepare, main, finish;
};

inline BackwardGrids backward_grids(const AttentionShape& shape, int qk_dim, int v_dim) {
  const std::int64_t heads = std::int64_t{shape.batch} * shape.heads;
  const std::int64_t kv_rows =
      shape.heads == shape.kv_heads ? 0 : std::int64_t{shape.batch} * shape.kv_len * shape.kv_heads;
  const std::int64_t finished = (heads * shape.query_len * qk_dim + kv_rows * (qk_dim + v_dim)) / 4;
  return {static_cast<unsigned>(heads * padded_queries(shape.query_len) / kRowsPerBlock),
          static_cast<unsigned>(heads * divide_up(shape.kv_len, kBackwardKeys)),
          static_cast<unsigned>((finished + kFinishThreads - 1) / kFinishThreads)};
}

}  // namespace moeline::bench

// Decode attention over MLA's latent cache (DeepSeek-V2, arXiv:2405.04434, with the up-projections absorbed): all heads
// of a query share one key of 512 + 64 elements, whose first 512 are the value. A tile of the cache is read into shared
// memory once and serves both products.
//
// Rows are (query, head) pairs. A block takes kRows rows and a part of the cache: 64 keys at a time, two buffers. Eight
// warps share out the scores by rows and keys, then the output by columns, 64 each; weights pass between them through
// shared memory. Parts of the cache meet in a second kernel.
#pragma once

#include "attention.cuh"

namespace moeline::bench {

struct DecodeShape {
  int batch, heads, query_len, kv_len;
};

constexpr int kLatentDim = 512;
constexpr int kLatentKeyDim = 576;
constexpr int kDecodeKeys = 64;

struct DecodeArguments {
  DecodeShape shape;
  float scale;          // of the scores, before the softmax
  int tiles_per_split;  // of kDecodeKeys keys
  const Bf16* query;    // [batch, query_len, heads, 576]
  const Bf16* cache;    // [batch, kv_len, 576]
  Bf16* output;         // [batch, query_len, heads, 512]
  // Of each part: [split, batch, query_len, heads], output times 512. Null where there is one part.
  float* split_output;
  float* split_log_sum;  // in base 2; minus infinity where a row sees no key of the part
};

template <int kRowsOfBlock>
struct DecodeTile {
  static constexpr int kThreads = 256;
  static constexpr int kRows = kRowsOfBlock;
  static constexpr int kParts = kRows / 16;                                  // of 16 rows
  static constexpr int kKeyWarps = 8 / kParts;                               // that share the keys of a part
  static constexpr int kBlocks = kDecodeKeys / kKeyWarps / 8;                // of 8 keys, of a warp
  static constexpr SharedAddress kStage = tile_bytes(kRows, kLatentKeyDim);  // the queries lie before it
  static constexpr SharedAddress kStageBytes = tile_bytes(kDecodeKeys, kLatentKeyDim);
  static constexpr SharedAddress kWeights = kStage + 2 * kStageBytes;
  static constexpr SharedAddress kStatistics = kWeights + tile_bytes(kRows, kDecodeKeys);  // [kKeyWarps][kRows] floats
  static constexpr SharedAddress kSharedBytes = kStatistics + kKeyWarps * kRows * 4;
};

// `scores` of a warp's 16 rows and kBlocks times 8 keys.
template <int kBlocks>
BENCH_DEVICE void score_latent(float (&scores)[kBlocks][4], SharedAddress query, SharedAddress key, int lane) {
  BENCH_UNROLL
  for (int k = 0; k < kLatentKeyDim; k += 32) {
    Fragment a[2];
    load_matrices(a[0], square<kLatentKeyDim>(query, 0, k, lane));
    load_matrices(a[1], square<kLatentKeyDim>(query, 0, k + 16, lane));
    BENCH_UNROLL
    for (int n = 0; n < kBlocks; ++n) {
      Fragment b;
      load_matrices(b, stripe<kLatentKeyDim>(key, n * 8, k, lane));
      multiply_add(scores[n], a[0], b[0], b[1]);
      multiply_add(scores[n], a[1], b[2], b[3]);
    }
  }
}

// The largest or the sum of a row's statistics over the warps that share it.
template <class Tile, class Combine>
BENCH_DEVICE float combine_row(SharedAddress statistics, int row, float initial, Combine combine) {
  BENCH_UNROLL
  for (int warp = 0; warp < Tile::kKeyWarps; ++warp)
    initial = combine(initial, load_shared(statistics + static_cast<SharedAddress>(warp * Tile::kRows + row) * 4));
  return initial;
}

BENCH_DEVICE float larger(float a, float b) { return fmaxf(a, b); }
BENCH_DEVICE float plus(float a, float b) { return a + b; }

// A maximum to subtract: a row that has seen no key has none.
BENCH_DEVICE float finite(float maximum) { return maximum == kMinusInfinity ? 0 : maximum; }

// The warp's 16 rows and its keys.
template <class Tile>
struct DecodeScores {
  float score[Tile::kBlocks][4] = {};

  // `last_visible`: of the lane's row `half`, counted from the warp's first key.
  BENCH_DEVICE void mask(int half, int last_visible, int lane) {
    BENCH_UNROLL
    for (int n = 0; n < Tile::kBlocks; ++n) {
      BENCH_UNROLL
      for (int i = 0; i < 2; ++i)
        if (n * 8 + lane % 4 * 2 + i > last_visible) score[n][2 * half + i] = kMinusInfinity;
    }
  }

  BENCH_DEVICE float maximum(int half) const {
    float result = kMinusInfinity;
    BENCH_UNROLL
    for (int n = 0; n < Tile::kBlocks; ++n) result = fmaxf(result, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
    return row_max(result);
  }

  // Returns the sum over the lane's own columns.
  BENCH_DEVICE float exponentiate(int half, float maximum, float scale_log2) {
    float sum = 0;
    BENCH_UNROLL
    for (int n = 0; n < Tile::kBlocks; ++n) {
      BENCH_UNROLL
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        score[n][i] = exp2_fast(fmaf(score[n][i], scale_log2, -maximum * scale_log2));
        sum += score[n][i];
      }
    }
    return sum;
  }

  BENCH_DEVICE void store(SharedAddress weights, int row, int first_key, int lane) const {
    BENCH_UNROLL
    for (int n = 0; n < Tile::kBlocks; ++n) {
      BENCH_UNROLL
      for (int half = 0; half < 2; ++half)
        store_shared(pair_address<kDecodeKeys>(weights, row + half * 8, first_key + n * 8, lane),
                     pack_bf16(score[n][2 * half], score[n][2 * half + 1]));
    }
  }
};

// All rows of the block and the warp's 64 columns.
template <class Tile>
struct DecodeOutput {
  float output[Tile::kParts][8][4] = {};
  float maximum[Tile::kParts][2];

  BENCH_DEVICE DecodeOutput() {
    BENCH_UNROLL
    for (int row = 0; row < 2 * Tile::kParts; ++row) maximum[row / 2][row % 2] = kMinusInfinity;
  }

  BENCH_DEVICE void rescale(SharedAddress statistics, float scale_log2, int lane) {
    BENCH_UNROLL
    for (int row = 0; row < 2 * Tile::kParts; ++row) {
      float& old = maximum[row / 2][row % 2];
      const float maximum_now = combine_row<Tile>(statistics, row * 8 + lane / 4, old, larger);
      const float factor = exp2_fast((old - finite(maximum_now)) * scale_log2);
      old = maximum_now;
      BENCH_UNROLL
      for (int n = 0; n < 8; ++n) {
        output[row / 2][n][row % 2 * 2] *= factor;
        output[row / 2][n][row % 2 * 2 + 1] *= factor;
      }
    }
  }

  BENCH_DEVICE void add_values(SharedAddress weights, SharedAddress values, int first_column, int lane) {
    BENCH_UNROLL
    for (int k = 0; k < kDecodeKeys; k += 16) {
      Fragment a[Tile::kParts];
      BENCH_UNROLL
      for (int part = 0; part < Tile::kParts; ++part)
        load_matrices(a[part], square<kDecodeKeys>(weights, part * 16, k, lane));
      BENCH_UNROLL
      for (int n = 0; n < 8; n += 2) {
        Fragment b;
        load_matrices_transposed(b, square<kLatentKeyDim>(values, k, first_column + n * 8, lane));
        BENCH_UNROLL
        for (int part = 0; part < Tile::kParts; ++part) {
          multiply_add(output[part][n], a[part], b[0], b[1]);
          multiply_add(output[part][n + 1], a[part], b[2], b[3]);
        }
      }
    }
  }
};

// Row statistics of a warp's 16 rows and its keys: what the lane holds of its two rows.
struct DecodeRows {
  float maximum[2] = {kMinusInfinity, kMinusInfinity};
  float sum[2] = {};
};

// Shares the warp's maxima with the warps that hold other keys of its rows.
template <class Tile>
BENCH_DEVICE void share_maxima(const DecodeScores<Tile>& scores, SharedAddress statistics, int row, int lane) {
  BENCH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float maximum = scores.maximum(half);
    if (lane % 4 == 0) store_shared(statistics + static_cast<SharedAddress>(row + half * 8 + lane / 4) * 4, maximum);
  }
}

template <class Tile>
BENCH_DEVICE void weigh(DecodeScores<Tile>& scores, DecodeRows& rows, SharedAddress statistics, int row,
                        float scale_log2, int lane) {
  BENCH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float maximum = combine_row<Tile>(statistics, row + half * 8 + lane / 4, rows.maximum[half], larger);
    rows.sum[half] *= exp2_fast((rows.maximum[half] - finite(maximum)) * scale_log2);
    rows.sum[half] += scores.exponentiate(half, finite(maximum), scale_log2);
    rows.maximum[half] = maximum;
  }
}

// The lane's part of a finished row, 8 pairs from `column` on, 8 elements apart: to the output or to that of its split.
BENCH_DEVICE void write_row(const DecodeArguments& arguments, std::int64_t row, int column, const float (&output)[8][4],
                            int half, float sum) {
  const float inverse = sum > 0 ? 1 / sum : 0;
  BENCH_UNROLL
  for (int n = 0; n < 8; ++n) {
    const std::int64_t at = row * kLatentDim + column + n * 8;
    const float first = output[n][2 * half] * inverse, second = output[n][2 * half + 1] * inverse;
    if (arguments.split_output == nullptr)
      store_wide(arguments.output + at, pack_bf16(first, second));
    else
      store_wide(arguments.split_output + at, Float2{{first, second}});
  }
}

// Grid: row tiles, splits, batch.
template <int kRows>
__global__ void __launch_bounds__(256, 1) mla_decode(DecodeArguments arguments) {
  using Tile = DecodeTile<kRows>;
  const DecodeShape& shape = arguments.shape;
  const int batch = static_cast<int>(blockIdx.z), split = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * kRows, rows = shape.heads * shape.query_len;
  const int tiles = divide_up(shape.kv_len, kDecodeKeys), first_tile = split * arguments.tiles_per_split;
  const int end = first_tile + arguments.tiles_per_split < tiles ? first_tile + arguments.tiles_per_split : tiles;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = same_in_warp(static_cast<int>(threadIdx.x) / 32);
  const SharedAddress shared = shared_memory(), weights = shared + Tile::kWeights;

  const auto stage_of = [&](int tile) {
    return shared + Tile::kStage + static_cast<SharedAddress>(tile % 2) * Tile::kStageBytes;
  };
  TileStream<kRows, kLatentKeyDim, Tile::kThreads>(
      arguments.query + (std::int64_t{batch} * rows + first_row) * kLatentKeyDim, kLatentKeyDim, rows - first_row)
      .copy(shared);
  const int first_key = first_tile * kDecodeKeys;
  TileStream<kDecodeKeys, kLatentKeyDim, Tile::kThreads> cache(
      arguments.cache + (std::int64_t{batch} * shape.kv_len + first_key) * kLatentKeyDim, kLatentKeyDim,
      shape.kv_len - first_key);
  cache.copy(stage_of(first_tile));

  // As one of the warps that share the scores: 16 rows from `row` on, keys of a tile from `key` on.
  const int row = warp / Tile::kKeyWarps * 16, key = warp % Tile::kKeyWarps * Tile::kBlocks * 8;
  const SharedAddress statistics = shared + Tile::kStatistics;
  const SharedAddress own_statistics = statistics + static_cast<SharedAddress>(warp % Tile::kKeyWarps * kRows) * 4;
  // As one of those that share the output.
  const int column = warp * (kLatentDim / 8);

  const float scale_log2 = arguments.scale * kLog2E;
  DecodeRows own;
  DecodeOutput<Tile> sum;
  for (int tile = first_tile; tile < end; ++tile) {
    wait_copies();
    synchronize_block();  // the tile is here, and no warp reads the other one or weights any more
    if (tile + 1 < end) cache.copy(stage_of(tile + 1));
    DecodeScores<Tile> scores;
    score_latent(scores.score, shared + tile_bytes(row, kLatentKeyDim), stage_of(tile) + tile_bytes(key, kLatentKeyDim),
                 lane);
    const int visible = shape.kv_len - shape.query_len + 1 - tile * kDecodeKeys;  // of the tile's keys, to query 0
    if (visible < kDecodeKeys) {
      BENCH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int query = (first_row + row + half * 8 + lane / 4) / shape.heads;
        scores.mask(half, visible + query - 1 - key, lane);
      }
    }
    share_maxima(scores, own_statistics, row, lane);
    synchronize_block();  // all maxima are there
    weigh(scores, own, statistics, row, scale_log2, lane);
    scores.store(weights, row, key, lane);
    sum.rescale(statistics, scale_log2, lane);
    synchronize_block();  // all weights are there
    sum.add_values(weights, stage_of(tile), column, lane);
  }

  BENCH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float total = row_sum(own.sum[half]);
    if (lane % 4 == 0) store_shared(own_statistics + static_cast<SharedAddress>(row + half * 8 + lane / 4) * 4, total);
  }
  synchronize_block();
  const std::int64_t first = (std::int64_t{split} * shape.batch + batch) * rows;  // split is 0 where there is one
  BENCH_UNROLL
  for (int i = 0; i < 2 * Tile::kParts; ++i) {
    const int own_row = i * 8 + lane / 4;
    if (first_row + own_row >= rows) continue;
    const float total = combine_row<Tile>(statistics, own_row, 0, plus);
    write_row(arguments, first + first_row + own_row, column + lane % 4 * 2, sum.output[i / 2], i % 2, total);
    if (arguments.split_output != nullptr && column == 0 && lane % 4 == 0)
      arguments.split_log_sum[first + first_row + own_row] = sum.maximum[i / 2][i % 2] * scale_log2 + log2f(total);
  }
}

// Grid: all rows. Joins the splits, each weighed by its share of the row's sum of exponentials.
constexpr int kMergeThreads = kLatentDim / 4;

__global__ void __launch_bounds__(kMergeThreads) mla_decode_merge(DecodeArguments arguments, int splits) {
  const std::int64_t rows = std::int64_t{arguments.shape.batch} * arguments.shape.query_len * arguments.shape.heads;
  const std::int64_t row = blockIdx.x;
  float maximum = kMinusInfinity;
  for (int split = 0; split < splits; ++split) maximum = fmaxf(maximum, arguments.split_log_sum[split * rows + row]);
  float total = 0, sum[4] = {};
  for (int split = 0; split < splits; ++split) {
    const float weight = exp2_fast(arguments.split_log_sum[split * rows + row] - maximum);
    const auto four = load_wide<Float4>(arguments.split_output + (split * rows + row) * kLatentDim + threadIdx.x * 4);
    total += weight;
    for (int i = 0; i < 4; ++i) sum[i] += weight * four.at[i];
  }
  store_wide(arguments.output + row * kLatentDim + threadIdx.x * 4,
             Bf16x4{{pack_bf16(sum[0] / total, sum[1] / total), pack_bf16(sum[2] / total, sum[3] / total)}});
}

}  // namespace moeline::bench

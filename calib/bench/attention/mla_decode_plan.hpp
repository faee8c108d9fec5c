// How many rows a block of MLA decode takes, and into how many parts the cache is split.
#pragma once

#include "mla_decode_kernel.cuh"

namespace moeline::bench {

struct DecodePlan {
  int rows_per_block;  // 16, 32 or 64
  int row_tiles;
  int tiles_per_split;
  int splits;
};

// A block's start and end cost about as much as this many tiles of the cache; so does the merge of several splits.
constexpr int kDecodeBlockTiles = 2;

// Takes the split whose waves of blocks, one block per SM, are done first; of equal ones the coarsest.
inline DecodePlan plan_decode(const DecodeShape& shape, int sms) {
  const int rows = shape.heads * shape.query_len, rows_per_block = rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
  const int row_tiles = divide_up(rows, rows_per_block), tiles = divide_up(shape.kv_len, kDecodeKeys);
  DecodePlan best{rows_per_block, row_tiles, tiles, 1};
  std::int64_t least = -1;
  for (int wanted = 1; wanted <= tiles; ++wanted) {
    const int tiles_per_split = divide_up(tiles, wanted), splits = divide_up(tiles, tiles_per_split);
    const std::int64_t blocks = std::int64_t{row_tiles} * shape.batch * splits;
    const std::int64_t time =
        (blocks + sms - 1) / sms * (tiles_per_split + kDecodeBlockTiles) + (splits > 1 ? kDecodeBlockTiles : 0);
    if (least >= 0 && time >= least) continue;
    least = time;
    best.tiles_per_split = tiles_per_split;
    best.splits = splits;
  }
  return best;
}

}  // namespace moeline::bench

// BF16 tiles in shared memory, and where a lane finds its part of them.
//
// A row's 16-byte chunks are permuted inside each 128 bytes: chunk c of row r lies at c ^ (r % 8). Eight rows at one
// chunk, which is what a matrix of ldmatrix reads, then lie in eight different banks. Tiles start at multiples of 128
// bytes, rows hold multiples of 64 elements.
#pragma once

#include "primitives.cuh"

namespace moeline::bench {

BENCH_HOST_DEVICE constexpr SharedAddress tile_bytes(int rows, int columns) {
  return static_cast<SharedAddress>(rows * columns * 2);
}

template <int kColumns>
BENCH_DEVICE SharedAddress chunk_address(SharedAddress tile, int row, int chunk) {
  return tile + tile_bytes(row, kColumns) + static_cast<SharedAddress>((chunk ^ (row % 8)) * 16);
}

// The same for a lane's place in a part of the tile that begins at `row`, a multiple of 8, and `column`, a multiple of
// the part's width. The permutation is an exclusive or, so the part's chunk may come after the lane's; the lane's own
// term is then the same for all tiles of a width, and what is constant stays so.
template <int kColumns>
BENCH_DEVICE SharedAddress lane_address(SharedAddress tile, int row, int column, int lane_row, int lane_chunk) {
  const auto chunk = static_cast<SharedAddress>(column) / 8;
  return (chunk_address<kColumns>(0, lane_row, lane_chunk) ^ (chunk % 8 * 16)) + chunk / 8 * 128 + tile +
         tile_bytes(row, kColumns);
}

// The four matrices of a 16x16 part: 0 and 1 one below the other, 2 and 3 to their right. They are operand a of a
// product; or two operands b, {0, 2} and {1, 3}, where b is stored by columns; or, loaded transposed, the operands
// {0, 1} and {2, 3} where b is stored by rows.
template <int kColumns>
BENCH_DEVICE SharedAddress square(SharedAddress tile, int row, int column, int lane) {
  return lane_address<kColumns>(tile, row, column, lane % 16, lane / 16);
}

// Four matrices side by side, 8 rows by 32 columns: operand b of two steps for a tile stored by columns.
template <int kColumns>
BENCH_DEVICE SharedAddress stripe(SharedAddress tile, int row, int column, int lane) {
  return lane_address<kColumns>(tile, row, column, lane % 8, lane / 8);
}

// Where a lane's pair of elements of a 16x8 sum goes: row `row` + lane / 4 of an otherwise BF16 tile; the sum's other
// pair belongs 8 rows further.
template <int kColumns>
BENCH_DEVICE SharedAddress pair_address(SharedAddress tile, int row, int column, int lane) {
  return chunk_address<kColumns>(tile, row + lane / 4, column / 8) + static_cast<SharedAddress>(lane % 4 * 4);
}

// Rows of a tensor on their way through shared memory, kRows at a time; after the last one come zeros. Eight lanes read
// 128 bytes of a row. What a thread keeps is its own place.
template <int kRows, int kColumns, int kThreads>
struct TileStream {
  static_assert(kColumns % 64 == 0 && kThreads % 64 == 0);
  static constexpr int kRowsAtOnce = kThreads / 8;

  const Bf16* from;
  int pitch;  // elements from row to row
  int rows;   // from the thread's own on

  BENCH_DEVICE TileStream(const Bf16* source, int pitch_of_source, int rows_of_source)
      : from(source + std::int64_t{own_row()} * pitch_of_source + own_chunk() * 8),
        pitch(pitch_of_source),
        rows(rows_of_source - own_row()) {}

  // Begins to copy the next rows.
  BENCH_DEVICE void copy(SharedAddress tile) {
    const SharedAddress to = chunk_address<kColumns>(tile, own_row(), own_chunk());
    BENCH_UNROLL
    for (int row = 0; row < kRows; row += kRowsAtOnce) {
      if (kRows % kRowsAtOnce != 0 && row + own_row() >= kRows) break;
      BENCH_UNROLL
      for (int column = 0; column < kColumns; column += 64)
        copy_async(to + tile_bytes(row, kColumns) + tile_bytes(1, column), from + column, row < rows);
      from += std::int64_t{row + kRowsAtOnce <= kRows ? kRowsAtOnce : kRows - row} * pitch;
    }
    rows -= kRows;
  }

  BENCH_DEVICE static int own_row() { return static_cast<int>(threadIdx.x) / 8; }
  BENCH_DEVICE static int own_chunk() { return static_cast<int>(threadIdx.x) % 8; }
};

// The 16x16 operand a whose halves are two neighbouring 16x8 sums: a sum's layout is that of half an operand.
BENCH_DEVICE void pack_operand(Fragment& a, const float (&left)[4], const float (&right)[4]) {
  a[0] = pack_bf16(left[0], left[1]);
  a[1] = pack_bf16(left[2], left[3]);
  a[2] = pack_bf16(right[0], right[1]);
  a[3] = pack_bf16(right[2], right[3]);
}

// Lanes 4i … 4i + 3 hold a row of a sum.
BENCH_DEVICE float row_sum(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

BENCH_DEVICE float row_max(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}

}  // namespace moeline::bench

// Per-channel FP8 cast with transpose: [rows, columns] BF16 to [columns, rows] FP8 with a scale per 128 rows of a
// column. A block takes 128 rows x 64 columns through shared memory, so that both sides move whole lines.
#include <cuda_bf16.h>

#include <memory>

#include "buffer.hpp"
#include "compare.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "numbers.hpp"
#include "quantize.cuh"
#include "quantize_check.hpp"
#include "random.hpp"
#include "vector.cuh"

namespace moeline::bench {
namespace {

constexpr int kThreads = 256, kRows = 128, kColumns = 64;
constexpr int kParts = kThreads / kColumns;  // threads that share a column
constexpr int kPartRows = kRows / kParts;    // rows of the column that one of them holds

struct Tile {
  alignas(16) __nv_bfloat16 in[kRows][kColumns + 8];  // the padding spreads a column over the banks
  alignas(16) unsigned char out[kColumns][kRows + 16];
  float amax[kParts][kColumns];
};

__device__ void load(Tile& tile, const __nv_bfloat16* in, std::int64_t columns) {
  constexpr int eights = kColumns / 8;
  for (int i = threadIdx.x; i < kRows * eights; i += kThreads) {
    const int row = i / eights, eight = i % eights;
    reinterpret_cast<Eight*>(tile.in[row])[eight] = reinterpret_cast<const Eight*>(in + row * columns)[eight];
  }
}

__device__ void store(const Tile& tile, unsigned char* out, std::int64_t rows) {
  constexpr int chunks = kRows / 16;
  for (int i = threadIdx.x; i < kColumns * chunks; i += kThreads) {
    const int column = i / chunks, chunk = i % chunks;
    reinterpret_cast<uint4*>(out + column * rows)[chunk] = reinterpret_cast<const uint4*>(tile.out[column])[chunk];
  }
}

__global__ void __launch_bounds__(kThreads) cast_and_transpose(const __nv_bfloat16* in, unsigned char* out,
                                                               float* scales, std::int64_t rows, std::int64_t columns) {
  __shared__ Tile tile;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kRows;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kColumns;
  load(tile, in + first_row * columns + first_column, columns);
  __syncthreads();

  const int column = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  float x[kPartRows];
  float amax = kLeastAmax;
#pragma unroll
  for (int i = 0; i < kPartRows; ++i) {
    x[i] = __bfloat162float(tile.in[part * kPartRows + i][column]);
    amax = fmaxf(amax, fabsf(x[i]));
  }
  tile.amax[part][column] = amax;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kParts; ++i) amax = fmaxf(amax, tile.amax[i][column]);
#pragma unroll
  for (int i = 0; i < kPartRows; i += 8) {
    const float eight[8] = {x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]};
    *reinterpret_cast<uint2*>(&tile.out[column][part * kPartRows + i]) = quantized(eight, kLargestFp8 / amax);
  }
  if (part == 0) scales[blockIdx.y * columns + first_column + column] = amax / kLargestFp8;
  __syncthreads();
  store(tile, out + first_column * rows + first_row, rows);
}

struct Operands {
  Operand<__nv_bfloat16> in;
  Operand<__nv_fp8_e4m3> out;
  Operand<float> scales;  // [rows / 128, columns]
};

/// Of a slab of whole rows, row after row: one column. Picked on the host, since copying single elements takes ages.
template <class T>
std::vector<T> column_of(const std::vector<T>& slab, std::int64_t columns, std::int64_t column) {
  std::vector<T> result;
  for (auto i = static_cast<std::size_t>(column); i < slab.size(); i += static_cast<std::size_t>(columns))
    result.push_back(slab[i]);
  return result;
}

/// The 128 rows that share scales, at sampled columns, which are rows of the output.
void check_slab(const Operands& o, std::int64_t slab, std::int64_t rows, std::int64_t columns) {
  const std::int64_t first_row = slab * kRows;
  const auto in = fetch(o.in.at(0) + first_row * columns, kRows * columns);
  const auto scales = fetch(o.scales.at(0) + slab * columns, columns);
  for (const auto column : sampled_places(columns))
    require_quantized(numbers(column_of(in, columns, column)), fetch(o.out.at(0) + column * rows + first_row, kRows),
                      column_of(scales, columns, column));
}

Kernel prepare(const Bench& bench, const Case& c) {
  const std::int64_t rows = c.number("rows"), columns = c.number("columns");
  if (rows % kRows != 0 || columns % kColumns != 0) throw Skip("rows by 128 and columns by 64 only");
  const int sets = cold_sets(bench.device, c.number("bytes"));
  auto o = std::make_shared<Operands>(
      Operands{{rows * columns, sets}, {rows * columns, sets}, {rows / kRows * columns, sets}});
  fill(o->in, 1, -1, 1, bench.stream);
  auto launch = [o, rows, columns](cudaStream_t stream, int turn) {
    const dim3 blocks(static_cast<unsigned>(columns / kColumns), static_cast<unsigned>(rows / kRows));
    cast_and_transpose<<<blocks, kThreads, 0, stream>>>(
        o->in.at(turn), reinterpret_cast<unsigned char*>(o->out.at(turn)), o->scales.at(turn), rows, columns);
    CHECK_LAUNCH();
  };
  auto compare = [o, rows, columns] {
    for (const auto slab : sampled_places(rows / kRows)) check_slab(*o, slab, rows, columns);
  };
  return checked(launch, compare);
}

}  // namespace

Fact cast_transpose_fact() {
  return kernel_fact(
      "cast_transpose", runs_everywhere, [](const Device&, Preset preset) { return cast_transpose_cases(preset); },
      prepare);
}

}  // namespace moeline::bench

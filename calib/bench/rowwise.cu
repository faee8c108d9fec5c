// One block per row with a reduction over it: RMSNorm, and the cast to FP8 with a scale per 128 columns.
#include <cuda_bf16.h>

#include <cmath>
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

constexpr int kThreads = 256;
constexpr int kEightsPerThread = 4;  // a row stays in registers between its two passes
constexpr int kMostColumns = kThreads * kEightsPerThread * 8;
constexpr float kEpsilon = 1e-6f;

__device__ float sum_of_block(float value) {
  __shared__ float of_warp[kThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (const float part : of_warp) sum += part;
  return sum;
}

__global__ void __launch_bounds__(kThreads) rms_norm(const Eight* in, const Eight* weight, Eight* out, int eights) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * eights;
  float x[kEightsPerThread][8];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kEightsPerThread; ++i) {
    const int place = threadIdx.x + i * kThreads;
    if (place >= eights) continue;
    unpack(in[row + place], x[i]);
#pragma unroll
    for (const float value : x[i]) squares += value * value;
  }
  const float factor = rsqrtf(sum_of_block(squares) / static_cast<float>(8 * eights) + kEpsilon);
#pragma unroll
  for (int i = 0; i < kEightsPerThread; ++i) {
    const int place = threadIdx.x + i * kThreads;
    if (place >= eights) continue;
    float w[8];
    unpack(weight[place], w);
#pragma unroll
    for (int j = 0; j < 8; ++j) x[i][j] *= factor * w[j];
    out[row + place] = pack(x[i]);
  }
}

/// Sixteen lanes hold one block of 128; whole blocks are in or out of the row.
__global__ void __launch_bounds__(kThreads) cast_to_fp8(const Eight* in, uint2* out, float* scales, int eights) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * eights;
  for (int place = threadIdx.x; place < eights; place += kThreads) {
    float x[8];
    unpack(in[row + place], x);
    const float amax = amax_of_16_lanes(x);
    out[row + place] = quantized(x, kLargestFp8 / amax);
    if (place % 16 == 0) scales[(row + place) / 16] = amax / kLargestFp8;
  }
}

struct Shape {
  std::int64_t rows, columns;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  [[nodiscard]] int eights() const { return static_cast<int>(columns / 8); }
};

std::vector<double> norm_of(const std::vector<double>& x, const std::vector<double>& weight) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEpsilon);
  std::vector<double> result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(x[i] * factor * weight[i]);
  return result;
}

Kernel prepare_norm(const Bench& bench, const Shape& shape, int sets) {
  if (shape.columns > kMostColumns) throw Skip("rows of more than " + std::to_string(kMostColumns) + " columns");
  struct Operands {
    Operand<__nv_bfloat16> in, weight, out;
  };
  auto o =
      std::make_shared<Operands>(Operands{{shape.elements(), sets}, {shape.columns, sets}, {shape.elements(), sets}});
  fill(o->in, 1, -1, 1, bench.stream);
  fill(o->weight, 2, 0.5f, 1.5f, bench.stream);
  auto launch = [o, shape](cudaStream_t stream, int turn) {
    rms_norm<<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(
        eights(o->in.at(turn)), eights(o->weight.at(turn)), eights(o->out.at(turn)), shape.eights());
    CHECK_LAUNCH();
  };
  auto compare = [o, shape] {
    const auto weight = numbers(fetch(o->weight.at(0), shape.columns));
    for (const auto row : sampled_places(shape.rows)) {
      const auto begin = row * shape.columns;
      require_close(numbers(fetch(o->out.at(0) + begin, shape.columns)),
                    norm_of(numbers(fetch(o->in.at(0) + begin, shape.columns)), weight), kRoundingTolerance);
    }
  };
  return checked(launch, compare);
}

Kernel prepare_cast(const Bench& bench, const Shape& shape, int sets) {
  struct Operands {
    Operand<__nv_bfloat16> in;
    Operand<__nv_fp8_e4m3> out;
    Operand<float> scales;
  };
  auto o = std::make_shared<Operands>(
      Operands{{shape.elements(), sets}, {shape.elements(), sets}, {shape.elements() / 128, sets}});
  fill(o->in, 1, -1, 1, bench.stream);
  auto launch = [o, shape](cudaStream_t stream, int turn) {
    cast_to_fp8<<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(
        eights(o->in.at(turn)), reinterpret_cast<uint2*>(o->out.at(turn)), o->scales.at(turn), shape.eights());
    CHECK_LAUNCH();
  };
  auto compare = [o, shape] {
    for (const auto row : sampled_places(shape.rows)) {
      const auto begin = row * shape.columns;
      require_quantized(numbers(fetch(o->in.at(0) + begin, shape.columns)), fetch(o->out.at(0) + begin, shape.columns),
                        fetch(o->scales.at(0) + begin / 128, shape.columns / 128));
    }
  };
  return checked(launch, compare);
}

Kernel prepare(const Bench& bench, const Case& c) {
  const Shape shape{c.number("rows"), c.number("columns")};
  const int sets = cold_sets(bench.device, c.number("bytes"));
  if (c.number("bytes") == rms_norm_bytes(shape.rows, shape.columns)) return prepare_norm(bench, shape, sets);
  return prepare_cast(bench, shape, sets);
}

}  // namespace

Fact rowwise_fact() {
  return kernel_fact(
      "rowwise", runs_everywhere, [](const Device&, Preset preset) { return rowwise_cases(preset); }, prepare);
}

}  // namespace moeline::bench

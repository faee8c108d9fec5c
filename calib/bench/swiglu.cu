// silu(gate) * up of an expert, fused with the cast to FP8 with a scale per 128 columns. One block per row; a row of
// the input is `columns` of gate and then as many of up.
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

/// Sixteen lanes hold one block of 128; whole blocks are in or out of the row.
__global__ void __launch_bounds__(kThreads) swiglu(const Eight* in, uint2* out, float* scales, int eights) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * eights;
  for (int place = threadIdx.x; place < eights; place += kThreads) {
    float gate[8], up[8];
    unpack(in[2 * row + place], gate);
    unpack(in[2 * row + eights + place], up);
#pragma unroll
    for (int j = 0; j < 8; ++j) up[j] *= gate[j] / (1 + __expf(-gate[j]));
    const float amax = amax_of_16_lanes(up);
    out[row + place] = quantized(up, kLargestFp8 / amax);
    if (place % 16 == 0) scales[(row + place) / 16] = amax / kLargestFp8;
  }
}

struct Operands {
  Operand<__nv_bfloat16> in;
  Operand<__nv_fp8_e4m3> out;
  Operand<float> scales;
};

std::vector<double> swiglu_of(const std::vector<double>& gate_and_up) {
  const std::size_t columns = gate_and_up.size() / 2;
  std::vector<double> result;
  for (std::size_t i = 0; i < columns; ++i)
    result.push_back(gate_and_up[i] / (1 + std::exp(-gate_and_up[i])) * gate_and_up[columns + i]);
  return result;
}

Kernel prepare(const Bench& bench, const Case& c) {
  const std::int64_t rows = c.number("rows"), columns = c.number("columns");
  const int sets = cold_sets(bench.device, c.number("bytes"));
  auto o = std::make_shared<Operands>(
      Operands{{2 * rows * columns, sets}, {rows * columns, sets}, {rows * columns / 128, sets}});
  fill(o->in, 1, -4, 4, bench.stream);
  auto launch = [o, rows, columns](cudaStream_t stream, int turn) {
    swiglu<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(eights(o->in.at(turn)),
                                                                 reinterpret_cast<uint2*>(o->out.at(turn)),
                                                                 o->scales.at(turn), static_cast<int>(columns / 8));
    CHECK_LAUNCH();
  };
  auto compare = [o, rows, columns] {
    for (const auto row : sampled_places(rows))
      require_quantized(swiglu_of(numbers(fetch(o->in.at(0) + 2 * row * columns, 2 * columns))),
                        fetch(o->out.at(0) + row * columns, columns),
                        fetch(o->scales.at(0) + row * columns / 128, columns / 128));
  };
  return checked(launch, compare);
}

}  // namespace

Fact swiglu_fact() {
  return kernel_fact(
      "swiglu", runs_everywhere, [](const Device&, Preset preset) { return swiglu_cases(preset); }, prepare);
}

}  // namespace moeline::bench

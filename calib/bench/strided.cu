// Rotary embedding: touches the last 64 of each head's 192 columns, in pairs of neighbours, and leaves the rest alone.
#include <cuda_bf16.h>

#include <cmath>
#include <memory>

#include "buffer.hpp"
#include "compare.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "numbers.hpp"
#include "random.hpp"
#include "vector.cuh"

namespace moeline::bench {
namespace {

constexpr int kThreads = 128;
constexpr int kHeadEights = kHeadColumns / 8, kRotaryEights = kRotaryColumns / 8;

/// A thread turns four pairs. blockIdx.y is the row; `turns` has a cosine and a sine for each of its 32 pairs.
__global__ void __launch_bounds__(kThreads) rotate(const Eight* in, const float2* turns, Eight* out, int heads) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= heads * kRotaryEights) return;
  const std::int64_t row = blockIdx.y;
  const int head = i / kRotaryEights, part = i % kRotaryEights;
  const std::int64_t place = (row * heads + head + 1) * kHeadEights - kRotaryEights + part;
  float x[8], y[8];
  unpack(in[place], x);
  const float4* angles = reinterpret_cast<const float4*>(turns + row * (kRotaryColumns / 2) + part * 4);
  const float4 first = angles[0], second = angles[1];
  const float cosine[4] = {first.x, first.z, second.x, second.z}, sine[4] = {first.y, first.w, second.y, second.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    y[2 * j] = x[2 * j] * cosine[j] - x[2 * j + 1] * sine[j];
    y[2 * j + 1] = x[2 * j] * sine[j] + x[2 * j + 1] * cosine[j];
  }
  out[place] = pack(y);
}

struct Operands {
  Operand<__nv_bfloat16> in, out;
  Operand<float> turns;  // any numbers will do: [rows, 32] pairs
};

/// The rotary columns of head 0 up to the last, those of a row one after another.
std::vector<double> rotary_columns(const __nv_bfloat16* row, std::int64_t columns) {
  const auto all = numbers(fetch(row, columns));
  std::vector<double> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % kHeadColumns >= kHeadColumns - kRotaryColumns) result.push_back(all[i]);
  return result;
}

std::vector<double> rotated(const std::vector<double>& x, const std::vector<double>& turns) {
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const double cosine = turns[i % kRotaryColumns], sine = turns[i % kRotaryColumns + 1];
    y.push_back(x[i] * cosine - x[i + 1] * sine);
    y.push_back(x[i] * sine + x[i + 1] * cosine);
  }
  return y;
}

Kernel prepare(const Bench& bench, const Case& c) {
  const std::int64_t rows = c.number("rows"), columns = c.number("columns");
  const auto heads = static_cast<int>(columns / kHeadColumns);
  const int sets = cold_sets(bench.device, c.number("bytes"));
  auto o = std::make_shared<Operands>(
      Operands{{rows * columns, sets}, {rows * columns, sets}, {rows * kRotaryColumns, sets}});
  fill(o->in, 1, -1, 1, bench.stream);
  fill(o->turns, 2, -1, 1, bench.stream);
  auto launch = [o, rows, heads](cudaStream_t stream, int turn) {
    const dim3 blocks(static_cast<unsigned>((heads * kRotaryEights + kThreads - 1) / kThreads),
                      static_cast<unsigned>(rows));
    rotate<<<blocks, kThreads, 0, stream>>>(eights(o->in.at(turn)), reinterpret_cast<const float2*>(o->turns.at(turn)),
                                            eights(o->out.at(turn)), heads);
    CHECK_LAUNCH();
  };
  auto compare = [o, rows, columns] {
    for (const auto row : sampled_places(rows)) {
      const auto turns = numbers(fetch(o->turns.at(0) + row * kRotaryColumns, kRotaryColumns));
      require_close(rotary_columns(o->out.at(0) + row * columns, columns),
                    rotated(rotary_columns(o->in.at(0) + row * columns, columns), turns), kRoundingTolerance);
    }
  };
  return checked(launch, compare);
}

}  // namespace

Fact strided_fact() {
  return kernel_fact(
      "strided", runs_everywhere, [](const Device&, Preset preset) { return strided_cases(preset); }, prepare);
}

}  // namespace moeline::bench

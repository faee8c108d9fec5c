// Element-wise work and rows moved by an index: nothing but the stream from memory and back.
#include <cuda_bf16.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "buffer.hpp"
#include "compare.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "numbers.hpp"
#include "random.hpp"
#include "vector.cuh"

namespace moeline::bench {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) add(const Eight* a, const Eight* b, Eight* c, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Eight x = a[i], y = b[i];
  Eight sum;
#pragma unroll
  for (int j = 0; j < 4; ++j) sum.pairs[j] = __hadd2(x.pairs[j], y.pairs[j]);
  c[i] = sum;
}

/// One block per row: row `from[r]` becomes row r.
__global__ void __launch_bounds__(kThreads) permute(const Eight* in, const int* from, Eight* out, int eights) {
  const Eight* source = in + static_cast<std::int64_t>(from[blockIdx.x]) * eights;
  Eight* target = out + static_cast<std::int64_t>(blockIdx.x) * eights;
  for (int i = threadIdx.x; i < eights; i += kThreads) target[i] = source[i];
}

struct Shape {
  std::int64_t rows, columns;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

Kernel prepare_add(const Bench& bench, const Shape& shape, int sets) {
  struct Operands {
    Operand<__nv_bfloat16> a, b, c;
  };
  auto x = std::make_shared<Operands>(
      Operands{{shape.elements(), sets}, {shape.elements(), sets}, {shape.elements(), sets}});
  fill(x->a, 1, -1, 1, bench.stream);
  fill(x->b, 2, -1, 1, bench.stream);
  const std::int64_t count = shape.elements() / 8;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  auto launch = [x, count, blocks](cudaStream_t stream, int turn) {
    add<<<blocks, kThreads, 0, stream>>>(eights(x->a.at(turn)), eights(x->b.at(turn)), eights(x->c.at(turn)), count);
    CHECK_LAUNCH();
  };
  auto compare = [x, shape] {
    for (const auto row : sampled_places(shape.rows)) {
      const auto begin = row * shape.columns;
      const auto a = numbers(fetch(x->a.at(0) + begin, shape.columns));
      const auto b = numbers(fetch(x->b.at(0) + begin, shape.columns));
      std::vector<double> sum(a.size());
      std::transform(a.begin(), a.end(), b.begin(), sum.begin(), std::plus<>());
      require_close(numbers(fetch(x->c.at(0) + begin, shape.columns)), sum, kRoundingTolerance);
    }
  };
  return checked(launch, compare);
}

/// Equal for equal counts, with every standard library: std::shuffle is not.
std::vector<int> permutation(std::int64_t count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

Kernel prepare_permutation(const Bench& bench, const Shape& shape, int sets) {
  struct Operands {
    Operand<__nv_bfloat16> in, out;
    Operand<int> from;
    std::vector<int> order;
  };
  auto x = std::make_shared<Operands>(
      Operands{{shape.elements(), sets}, {shape.elements(), sets}, {shape.rows, sets}, permutation(shape.rows)});
  fill(x->in, 1, -1, 1, bench.stream);
  for (int set = 0; set < sets; ++set) store(x->from.at(set), x->order);
  auto launch = [x, shape](cudaStream_t stream, int turn) {
    permute<<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(
        eights(x->in.at(turn)), x->from.at(turn), eights(x->out.at(turn)), static_cast<int>(shape.columns / 8));
    CHECK_LAUNCH();
  };
  auto compare = [x, shape] {
    for (const auto row : sampled_places(shape.rows)) {
      const auto source = x->order[static_cast<std::size_t>(row)] * shape.columns;
      require_close(numbers(fetch(x->out.at(0) + row * shape.columns, shape.columns)),
                    numbers(fetch(x->in.at(0) + source, shape.columns)), 0);
    }
  };
  return checked(launch, compare);
}

Kernel prepare(const Bench& bench, const Case& c) {
  const Shape shape{c.number("rows"), c.number("columns")};
  const int sets = cold_sets(bench.device, c.number("bytes"));
  if (c.number("bytes") == add_bytes(shape.rows, shape.columns)) return prepare_add(bench, shape, sets);
  return prepare_permutation(bench, shape, sets);
}

}  // namespace

Fact streaming_fact() {
  return kernel_fact(
      "streaming", runs_everywhere, [](const Device&, Preset preset) { return streaming_cases(preset); }, prepare);
}

}  // namespace moeline::bench

// BF16 products in groups, D = X W^T in each: the operands, and how their kernel is made and checked.
#pragma once

#include <memory>

#include "blas_handle.hpp"
#include "matmul_kernel.hpp"
#include "numbers.hpp"
#include "product_check.hpp"
#include "random.hpp"

namespace moeline::bench {

/// Weights are [groups, n, k]. Rows of X and D lie as `row_of` of prepare_groups says.
struct Bf16Groups {
  Bf16Groups(const Bench& bench, const MatmulShape& s, int sets)
      : shape(s),
        handle(bench),
        x(s.groups * s.m * s.k, sets),
        w(s.groups * s.n * s.k, sets),
        d(s.groups * s.m * s.n, sets) {}

  MatmulShape shape;
  BlasHandle handle;
  Operand<__nv_bfloat16> x, w, d;
};

/// `Operands`: a Bf16Groups or more. `launch(Operands&, stream, turn)`. `row_of(shape, group, row)`: which of the
/// groups x m rows of X and of D is this row of this group.
template <class Operands, class Launch, class RowOf>
Kernel prepare_groups(const Bench& bench, const Case& c, Launch launch, RowOf row_of) {
  const auto s = matmul_shape(c);
  const std::int64_t bytes = 2 * s.groups * (s.m * s.k + s.n * s.k + s.m * s.n);
  auto o = std::make_shared<Operands>(bench, s, cold_sets(bench.device, bytes));
  fill(o->x, 1, -1, 1, bench.stream);
  fill(o->w, 2, -1, 1, bench.stream);
  const auto compare = [o, s, row_of] {
    const auto row = [&](const __nv_bfloat16* tensor, std::int64_t at) {
      return numbers(fetch(tensor + at * s.k, s.k));
    };
    require_product({.groups = s.groups,
                     .m = s.m,
                     .n = s.n,
                     .x = [&](std::int64_t g, std::int64_t r) { return row(o->x.at(0), row_of(s, g, r)); },
                     .w = [&](std::int64_t g, std::int64_t r) { return row(o->w.at(0), g * s.n + r); },
                     .d = [&](std::int64_t g, std::int64_t r) { return o->d.at(0) + row_of(s, g, r) * s.n; }});
  };
  return checked([o, launch](cudaStream_t stream, int turn) { launch(*o, stream, turn); }, compare);
}

}  // namespace moeline::bench

// The batched products of MLA decode: one per head, between a token's heads of 128 and the latent space of 512.
// Activations are [m, groups, k] and [m, groups, n], as attention leaves and takes them; weights are [groups, n, k].
#include <memory>

#include "blas_handle.hpp"
#include "facts.hpp"
#include "grid.hpp"
#include "matmul_kernel.hpp"
#include "numbers.hpp"
#include "product_check.hpp"
#include "random.hpp"

namespace moeline::bench {
namespace {

struct Operands {
  Operands(const Bench& bench, const MatmulShape& s, int sets)
      : shape(s),
        handle(bench),
        x(s.groups * s.m * s.k, sets),
        w(s.groups * s.n * s.k, sets),
        d(s.groups * s.m * s.n, sets) {}

  MatmulShape shape;
  BlasHandle handle;
  Operand<__nv_bfloat16> x, w, d;
};

/// cuBLAS counts columns first: as in matmul.hpp its A is W, transposed, and its B is X.
void launch(Operands& o, cudaStream_t stream, int turn) {
  const auto& s = o.shape;
  const auto m = static_cast<int>(s.m), n = static_cast<int>(s.n), k = static_cast<int>(s.k);
  const auto groups = static_cast<int>(s.groups);
  const float alpha = 1, beta = 0;
  CHECK_STATUS(cublasGemmStridedBatchedEx(o.handle.on(stream), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &alpha, o.w.at(turn),
                                          CUDA_R_16BF, k, s.n * s.k, o.x.at(turn), CUDA_R_16BF, groups * k, s.k, &beta,
                                          o.d.at(turn), CUDA_R_16BF, groups * n, s.n, groups, CUBLAS_COMPUTE_32F,
                                          CUBLAS_GEMM_DEFAULT));
}

void compare(const Operands& o) {
  const auto& s = o.shape;
  require_product(
      {.groups = s.groups,
       .m = s.m,
       .n = s.n,
       .x = [&](std::int64_t g,
                std::int64_t row) { return numbers(fetch(o.x.at(0) + (row * s.groups + g) * s.k, s.k)); },
       .w = [&](std::int64_t g, std::int64_t row) { return numbers(fetch(o.w.at(0) + (g * s.n + row) * s.k, s.k)); },
       .d = [&](std::int64_t g, std::int64_t row) { return o.d.at(0) + (row * s.groups + g) * s.n; }});
}

Kernel prepare(const Bench& bench, const Case& c) {
  const auto s = matmul_shape(c);
  const std::int64_t bytes = 2 * s.groups * (s.m * s.k + s.n * s.k + s.m * s.n);
  auto o = std::make_shared<Operands>(bench, s, cold_sets(bench.device, bytes));
  fill(o->x, 1, -1, 1, bench.stream);
  fill(o->w, 2, -1, 1, bench.stream);
  return checked([o](cudaStream_t stream, int turn) { launch(*o, stream, turn); }, [o] { compare(*o); });
}

}  // namespace

Fact gemm_bf16_batched_fact() {
  return kernel_fact(
      "gemm_bf16_batched", runs_everywhere,
      [](const Device&, Preset preset) { return gemm_bf16_batched_cases(preset); }, prepare);
}

}  // namespace moeline::bench

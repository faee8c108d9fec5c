// The batched products of MLA decode: one per head, between a token's heads of 128 and the latent space of 512.
// Activations are [m, groups, k] and [m, groups, n], as attention leaves and takes them; weights are [groups, n, k].
#include "bf16_groups.hpp"
#include "facts.hpp"
#include "grid.hpp"

namespace moeline::bench {
namespace {

/// cuBLAS counts columns first: as in matmul.hpp its A is W, transposed, and its B is X.
void launch(Bf16Groups& o, cudaStream_t stream, int turn) {
  const auto& s = o.shape;
  const auto m = static_cast<int>(s.m), n = static_cast<int>(s.n), k = static_cast<int>(s.k);
  const auto groups = static_cast<int>(s.groups);
  const float alpha = 1, beta = 0;
  CHECK_STATUS(cublasGemmStridedBatchedEx(o.handle.on(stream), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &alpha, o.w.at(turn),
                                          CUDA_R_16BF, k, s.n * s.k, o.x.at(turn), CUDA_R_16BF, groups * k, s.k, &beta,
                                          o.d.at(turn), CUDA_R_16BF, groups * n, s.n, groups, CUBLAS_COMPUTE_32F,
                                          CUBLAS_GEMM_DEFAULT));
}

Kernel prepare(const Bench& bench, const Case& c) {
  return prepare_groups<Bf16Groups>(bench, c, launch, [](const MatmulShape& s, std::int64_t group, std::int64_t row) {
    return row * s.groups + group;
  });
}

}  // namespace

Fact gemm_bf16_batched_fact() {
  return kernel_fact(
      "gemm_bf16_batched", runs_everywhere,
      [](const Device&, Preset preset) { return gemm_bf16_batched_cases(preset); }, prepare);
}

}  // namespace moeline::bench

// One BF16 product per expert, all in one call of cuBLAS's grouped GEMM.
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

/// Where each group's matrix begins, of every set of operands: cuBLAS reads the addresses on the device.
template <class T>
Operand<T*> group_addresses(const Operand<T>& operand, std::int64_t groups, int sets) {
  Operand<T*> addresses(groups, sets);
  std::vector<T*> of_set(static_cast<std::size_t>(groups));
  for (int set = 0; set < sets; ++set) {
    for (std::int64_t g = 0; g < groups; ++g)
      of_set[static_cast<std::size_t>(g)] = operand.at(set) + g * (operand.elements() / groups);
    store(addresses.at(set), of_set);
  }
  return addresses;
}

struct Operands {
  Operands(const Bench& bench, const MatmulShape& s, int sets)
      : shape(s),
        handle(bench),
        x(s.groups * s.m * s.k, sets),
        w(s.groups * s.n * s.k, sets),
        d(s.groups * s.m * s.n, sets),
        x_groups(group_addresses(x, s.groups, sets)),
        w_groups(group_addresses(w, s.groups, sets)),
        d_groups(group_addresses(d, s.groups, sets)) {}

  MatmulShape shape;
  BlasHandle handle;
  Operand<__nv_bfloat16> x, w, d;
  Operand<__nv_bfloat16*> x_groups, w_groups, d_groups;
};

/// cuBLAS counts columns first: as in matmul.hpp its A is W, transposed, and its B is X.
void launch(Operands& o, cudaStream_t stream, int turn) {
  const auto groups = static_cast<std::size_t>(o.shape.groups);
  const std::vector<cublasOperation_t> transposed(groups, CUBLAS_OP_T), plain(groups, CUBLAS_OP_N);
  const std::vector<int> m(groups, static_cast<int>(o.shape.n)), n(groups, static_cast<int>(o.shape.m));
  const std::vector<int> k(groups, static_cast<int>(o.shape.k)), one(groups, 1);
  const std::vector<float> alpha(groups, 1), beta(groups, 0);
  CHECK_STATUS(
      cublasGemmGroupedBatchedEx(o.handle.on(stream), transposed.data(), plain.data(), m.data(), n.data(), k.data(),
                                 alpha.data(), reinterpret_cast<const void* const*>(o.w_groups.at(turn)), CUDA_R_16BF,
                                 k.data(), reinterpret_cast<const void* const*>(o.x_groups.at(turn)), CUDA_R_16BF,
                                 k.data(), beta.data(), reinterpret_cast<void* const*>(o.d_groups.at(turn)),
                                 CUDA_R_16BF, m.data(), static_cast<int>(groups), one.data(), CUBLAS_COMPUTE_32F));
}

void compare(const Operands& o) {
  const auto& s = o.shape;
  require_product(
      {.groups = s.groups,
       .m = s.m,
       .n = s.n,
       .x = [&](std::int64_t g, std::int64_t row) { return numbers(fetch(o.x.at(0) + (g * s.m + row) * s.k, s.k)); },
       .w = [&](std::int64_t g, std::int64_t row) { return numbers(fetch(o.w.at(0) + (g * s.n + row) * s.k, s.k)); },
       .d = [&](std::int64_t g, std::int64_t row) { return o.d.at(0) + (g * s.m + row) * s.n; }});
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

Fact gemm_bf16_grouped_fact() {
  return kernel_fact(
      "gemm_bf16_grouped", runs_everywhere,
      [](const Device&, Preset preset) { return gemm_bf16_grouped_cases(preset); }, prepare);
}

}  // namespace moeline::bench

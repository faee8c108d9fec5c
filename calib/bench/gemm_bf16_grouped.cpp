// One BF16 product per expert, all in one call of cuBLAS's grouped GEMM.
#include "bf16_groups.hpp"
#include "facts.hpp"
#include "grid.hpp"

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

struct Operands : Bf16Groups {
  Operands(const Bench& bench, const MatmulShape& s, int sets)
      : Bf16Groups(bench, s, sets),
        x_groups(group_addresses(x, s.groups, sets)),
        w_groups(group_addresses(w, s.groups, sets)),
        d_groups(group_addresses(d, s.groups, sets)) {}

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

Kernel prepare(const Bench& bench, const Case& c) {
  return prepare_groups<Operands>(
      bench, c, launch, [](const MatmulShape& s, std::int64_t group, std::int64_t row) { return group * s.m + row; });
}

}  // namespace

Fact gemm_bf16_grouped_fact() {
  return kernel_fact(
      "gemm_bf16_grouped", runs_everywhere,
      [](const Device&, Preset preset) { return gemm_bf16_grouped_cases(preset); }, prepare);
}

}  // namespace moeline::bench

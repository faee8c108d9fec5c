// Dense BF16 products, by cuBLASLt.
#include "facts.hpp"
#include "grid.hpp"
#include "matmul_kernel.hpp"

namespace moeline::bench {

Fact gemm_bf16_fact() {
  return kernel_fact(
      "gemm_bf16", runs_everywhere, [](const Device&, Preset preset) { return gemm_bf16_cases(preset); },
      [](const Bench& bench, const Case& c) { return prepare_matmul(bench, matmul_shape(c)); });
}

}  // namespace moeline::bench

// FP8 products with block scaling, by cuBLASLt: dense ones, and one per expert over a buffer of as many rows each.
#include "facts.hpp"
#include "grid.hpp"
#include "matmul_kernel.hpp"

namespace moeline::bench {
namespace {

std::string cannot_run(const Device& device) {
  return fp8_scaling_of(device).empty() ? "cuBLASLt has no FP8 block scaling for this device" : "";
}

/// What a device without block scaling lacks is listed as it would run on Hopper.
std::string listed_scaling(const Device& device) {
  const auto scaling = fp8_scaling_of(device);
  return scaling.empty() ? "1x128" : scaling;
}

Kernel prepare(const Bench& bench, const Case& c) { return prepare_matmul(bench, matmul_shape(c)); }

}  // namespace

Fact gemm_fp8_fact() {
  return kernel_fact(
      "gemm_fp8", cannot_run,
      [](const Device& device, Preset preset) { return gemm_fp8_cases(preset, listed_scaling(device)); }, prepare);
}

Fact gemm_fp8_masked_fact() {
  return kernel_fact(
      "gemm_fp8_masked", cannot_run,
      [](const Device& device, Preset preset) { return gemm_fp8_masked_cases(preset, listed_scaling(device)); },
      prepare);
}

}  // namespace moeline::bench

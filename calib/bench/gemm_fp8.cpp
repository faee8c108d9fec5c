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

/// Where the scales of one group end and those of the next begin is documented nowhere: that they lie one after
/// another, as the operands do, is an assumption. A library that has it otherwise can measure one group only, and that
/// is no failure of ours.
Kernel prepare_masked(const Bench& bench, const Case& c) {
  Kernel kernel = prepare(bench, c);
  if (c.number("groups") == 1) return kernel;
  kernel.check = [check = kernel.check](cudaStream_t stream) {
    const auto skip = [](const std::exception& error) {
      return Skip(std::string("cuBLASLt does not batch block-scaled FP8 as assumed: ") + error.what());
    };
    try {
      check(stream);
    } catch (const WrongResult& error) {
      throw skip(error);
    } catch (const BlasError& error) {
      throw skip(error);
    }
  };
  return kernel;
}

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
      prepare_masked);
}

}  // namespace moeline::bench

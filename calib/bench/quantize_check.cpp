#include "quantize_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "check.hpp"

namespace moeline::bench {
namespace {

void require(double error, double allowed, const char* what, std::size_t place) {
  if (error <= allowed) return;  // false for a NaN too
  throw WrongResult(std::string(what) + " " + std::to_string(place) + ": error " + std::to_string(error) +
                    " (allowed " + std::to_string(allowed) + ")");
}

}  // namespace

void require_quantized(const std::vector<double>& want, const std::vector<__nv_fp8_e4m3>& got,
                       const std::vector<float>& scales) {
  for (std::size_t block = 0; block < scales.size(); ++block) {
    const auto begin = want.begin() + static_cast<std::ptrdiff_t>(128 * block);
    double amax = 0;
    for (auto x = begin; x != begin + 128; ++x) amax = std::max(amax, std::abs(*x));
    require(std::abs(scales[block] * 448.0 - amax), 1e-4 * amax, "scale", block);
    for (std::size_t i = 128 * block; i < 128 * (block + 1); ++i) {
      const double value = static_cast<double>(static_cast<float>(got[i])) * scales[block];
      // Half a step of three bits of mantissa, or half the least number (2^-9); and the rounding of the inputs.
      const double allowed = 1.01 * std::abs(want[i]) / 16 + scales[block] * 0x1p-9;
      require(std::abs(value - want[i]), allowed, "number", i);
    }
  }
}

}  // namespace moeline::bench

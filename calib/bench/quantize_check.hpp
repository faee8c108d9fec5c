// Casts to FP8 held against the numbers they came from.
#pragma once

#include <cuda_fp8.h>

#include <vector>

namespace moeline::bench {

/// Throws WrongResult unless every block of 128 has the scale amax / 448, and every number is right to a rounding.
void require_quantized(const std::vector<double>& want, const std::vector<__nv_fp8_e4m3>& got,
                       const std::vector<float>& scales);

}  // namespace moeline::bench

// Casts to FP8 (E4M3) with a scale per block of 128: scale = largest magnitude / 448.
#pragma once

#include <cuda_fp8.h>

namespace moeline::bench {

constexpr float kLargestFp8 = 448, kLeastAmax = 1e-4f;

/// The largest magnitude of `values` and of the other 15 lanes that hold the same block of 128. All 16 must call it.
__device__ inline float amax_of_16_lanes(const float (&values)[8]) {
  float amax = kLeastAmax;
#pragma unroll
  for (const float value : values) amax = fmaxf(amax, fabsf(value));
  const unsigned lanes = 0xffffu << (threadIdx.x % 32 / 16 * 16);
#pragma unroll
  for (int step = 8; step > 0; step /= 2) amax = fmaxf(amax, __shfl_xor_sync(lanes, amax, step));
  return amax;
}

/// Eight numbers times `factor`, rounded to FP8.
__device__ inline uint2 quantized(const float (&values)[8], float factor) {
  unsigned short pairs[4];
#pragma unroll
  for (int j = 0; j < 4; ++j)
    pairs[j] = __nv_cvt_float2_to_fp8x2(make_float2(values[2 * j] * factor, values[2 * j + 1] * factor), __NV_SATFINITE,
                                        __NV_E4M3);
  return make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
}

}  // namespace moeline::bench

// Sixteen bytes at a time: the widest access of a thread, as eight BF16 numbers.
#pragma once

#include <cuda_bf16.h>

namespace moeline::bench {

struct alignas(16) Eight {
  __nv_bfloat162 pairs[4];
};

inline Eight* eights(__nv_bfloat16* data) { return reinterpret_cast<Eight*>(data); }

__device__ inline void unpack(const Eight& x, float (&values)[8]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 pair = __bfloat1622float2(x.pairs[j]);
    values[2 * j] = pair.x;
    values[2 * j + 1] = pair.y;
  }
}

__device__ inline Eight pack(const float (&values)[8]) {
  Eight x;
#pragma unroll
  for (int j = 0; j < 4; ++j) x.pairs[j] = __floats2bfloat162_rn(values[2 * j], values[2 * j + 1]);
  return x;
}

}  // namespace moeline::bench

// Operands full of random numbers: zeros would draw less power, and hide wrong results.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "buffer.hpp"

namespace moeline::bench {

/// Uniform within [low, high), equal for equal seeds; enqueued on `stream`.
void fill(__nv_bfloat16* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream);
void fill(__nv_fp8_e4m3* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream);
void fill(float* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream);
/// Whole numbers within [low, high).
void fill(std::uint8_t* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream);

/// All copies, each with numbers of its own.
template <class T>
void fill(const Operand<T>& operand, unsigned seed, float low, float high, cudaStream_t stream) {
  fill(operand.at(0), operand.all_elements(), seed, low, high, stream);
}

}  // namespace moeline::bench

#include "random.hpp"

namespace moeline::bench {
namespace {

/// Uniform within [0, 1), a function of seed and place alone (the mixing step of splitmix64).
__device__ float uniform(unsigned seed, std::int64_t place) {
  std::uint64_t x = static_cast<std::uint64_t>(place) + (static_cast<std::uint64_t>(seed) << 40);
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return static_cast<float>(x >> 40) * 0x1p-24f;
}

template <class T>
__global__ void fill_uniform(T* data, std::int64_t count, unsigned seed, float low, float high) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = static_cast<T>(low + (high - low) * uniform(seed, i));
}

template <class T>
void launch(T* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream) {
  fill_uniform<<<2048, 256, 0, stream>>>(data, count, seed, low, high);
  CHECK_LAUNCH();
}

}  // namespace

void fill(__nv_bfloat16* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream) {
  launch(data, count, seed, low, high, stream);
}
void fill(__nv_fp8_e4m3* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream) {
  launch(data, count, seed, low, high, stream);
}
void fill(float* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream) {
  launch(data, count, seed, low, high, stream);
}
void fill(std::uint8_t* data, std::int64_t count, unsigned seed, float low, float high, cudaStream_t stream) {
  launch(data, count, seed, low, high, stream);
}

}  // namespace moeline::bench

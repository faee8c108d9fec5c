#include "buffer.hpp"

namespace moeline::bench {
namespace {

std::string megabytes(std::size_t bytes) { return std::to_string(bytes / 1'000'000) + " MB"; }

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status != cudaErrorMemoryAllocation) {
    CHECK_STATUS(status);
    return;
  }
  (void)cudaGetLastError();  // not sticky: the next call must not find it
  std::size_t free = 0, total = 0;
  CHECK_STATUS(cudaMemGetInfo(&free, &total));
  throw Skip("needs another " + megabytes(bytes) + " of memory, " + megabytes(free) + " are free");
}

}  // namespace moeline::bench

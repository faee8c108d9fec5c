// The cuBLAS handle that all kernels share, with a workspace of the kernel's own, so that no call allocates while
// another kernel runs and none writes where another one does.
#pragma once

#include <cublas_v2.h>

#include "bench.hpp"
#include "buffer.hpp"

namespace moeline::bench {

class BlasHandle {
 public:
  explicit BlasHandle(const Bench& bench) : handle_(bench.blas), workspace_(32 << 20) {}
  /// For calls on `stream`. Choosing a stream makes cuBLAS forget the workspace.
  [[nodiscard]] cublasHandle_t on(cudaStream_t stream) {
    CHECK_STATUS(cublasSetStream(handle_, stream));
    CHECK_STATUS(cublasSetWorkspace(handle_, workspace_.data(), workspace_.bytes()));
    return handle_;
  }

 private:
  cublasHandle_t handle_;
  Buffer workspace_;
};

}  // namespace moeline::bench

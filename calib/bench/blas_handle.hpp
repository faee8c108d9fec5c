// A cuBLAS handle with a workspace of its own, so that no call allocates while another kernel runs.
#pragma once

#include <cublas_v2.h>

#include "buffer.hpp"

namespace moeline::bench {

class BlasHandle {
 public:
  BlasHandle() : workspace_(32 << 20) {
    CHECK_STATUS(cublasCreate(&handle_));
    CHECK_STATUS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST));
  }
  ~BlasHandle() { (void)cublasDestroy(handle_); }
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  /// For calls on `stream`. Choosing a stream makes cuBLAS forget the workspace.
  [[nodiscard]] cublasHandle_t on(cudaStream_t stream) {
    CHECK_STATUS(cublasSetStream(handle_, stream));
    CHECK_STATUS(cublasSetWorkspace(handle_, workspace_.data(), workspace_.bytes()));
    return handle_;
  }

 private:
  Buffer workspace_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace moeline::bench

// Statuses of CUDA and cuBLAS as exceptions that name the call and its place.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace moeline::bench {

/// This machine or library cannot run the case: it is written as skipped, and that is no failure.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A kernel's result differs from the reference: skipped too, and the program's exit code is 1.
struct WrongResult : std::runtime_error {
  explicit WrongResult(const std::string& what) : std::runtime_error("wrong result: " + what) {}
};

/// cuBLAS or cuBLASLt refused a call.
struct BlasError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::string place(const char* file, int line, const char* call) {
  const char* slash = std::strrchr(file, '/');
  return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line) + ": " + call + ": ";
}

inline void check_status(cudaError_t status, const char* file, int line, const char* call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // a launch's error is reported once, here
  throw std::runtime_error(place(file, line, call) + cudaGetErrorString(status));
}

inline void check_status(cublasStatus_t status, const char* file, int line, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw BlasError(place(file, line, call) + cublasGetStatusString(status));
}

}  // namespace moeline::bench

#define CHECK_STATUS(call) ::moeline::bench::check_status((call), __FILE__, __LINE__, #call)
/// After a launch: errors of its configuration.
#define CHECK_LAUNCH() CHECK_STATUS(cudaGetLastError())

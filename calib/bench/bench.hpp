// A fact: one physical property, measured over a grid of cases under a stable key.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "case.hpp"
#include "check.hpp"
#include "device.hpp"
#include "metric.hpp"

namespace moeline::bench {

/// What a case may use. Everything here is made once and lives as long as the program: of two streams alone each
/// has a queue of its own on the device, and library handles are slow to make.
struct Bench {
  Device device;
  cudaStream_t stream = nullptr;     ///< does not synchronise with the legacy default stream, nor does the neighbour's
  cudaStream_t neighbour = nullptr;  ///< for what `contention` runs beside a kernel
  cublasHandle_t blas = nullptr;     ///< through BlasHandle (blas_handle.hpp), which gives it a workspace
  cublasLtHandle_t blas_lt = nullptr;
};

/// REQUIRES: there is a device.
[[nodiscard]] Bench open_bench();

/// One kernel with its operands, ready to be launched. The functions own the operands.
struct Kernel {
  /// Enqueues the kernel and returns; never waits for the device. `turn` counts launches and picks the operands.
  std::function<void(cudaStream_t, int turn)> launch;
  /// Launches turn 0, holds sampled results against a reference on the host, throws WrongResult.
  std::function<void(cudaStream_t)> check;
};

/// A kernel whose check launches turn 0, waits for it and calls `compare`.
[[nodiscard]] inline Kernel checked(std::function<void(cudaStream_t, int turn)> launch, std::function<void()> compare) {
  auto check = [launch, compare = std::move(compare)](cudaStream_t stream) {
    launch(stream, 0);
    CHECK_STATUS(cudaStreamSynchronize(stream));
    compare();
  };
  return {std::move(launch), std::move(check)};
}

struct Fact {
  std::string key;
  /// Why this device cannot measure it, or "".
  std::function<std::string(const Device&)> cannot_run;
  std::function<std::vector<Case>(const Device&, Preset)> cases;
  /// Of facts that are the time of one kernel, so that `contention` can run the kernel too; empty otherwise.
  std::function<Kernel(const Bench&, const Case&)> prepare;
  /// Throws Skip, WrongResult, or std::runtime_error for a failed call.
  std::function<std::vector<Metric>(const Bench&, const Case&)> run;
};

/// The fact whose one metric is the `time` of the kernel that `prepare` makes: checked first, then timed.
[[nodiscard]] Fact kernel_fact(std::string key, std::function<std::string(const Device&)> cannot_run,
                               std::function<std::vector<Case>(const Device&, Preset)> cases,
                               std::function<Kernel(const Bench&, const Case&)> prepare);

/// For `cannot_run` of what every device can measure.
[[nodiscard]] inline std::string runs_everywhere(const Device&) { return ""; }

}  // namespace moeline::bench

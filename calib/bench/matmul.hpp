// D = X W^T by cuBLASLt, in the row-major words of a model: X [groups, m, k], W [groups, n, k], D [groups, m, n] BF16.
//
// cuBLASLt counts columns first, so to it W is A (transposed), X is B, and D is n x m. FP8 runs in this layout alone.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench.hpp"
#include "buffer.hpp"

namespace moeline::bench {

enum class Scaling {
  none,    ///< BF16 operands
  hopper,  ///< `1x128`: FP32 scales, X by 1x128, W by 128x128
  mx       ///< `mx32`: powers of two, both by 1x32
};

[[nodiscard]] Scaling scaling_named(const std::string& name);
/// `1x128`, `mx32`, or "" where cuBLASLt has no block scaling for the device.
[[nodiscard]] std::string fp8_scaling_of(const Device& device);

struct MatmulShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t groups = 1;
  int sms = 0;  ///< that cuBLASLt is told to use; 0: all
  Scaling scaling = Scaling::none;
};

/// How many scales an operand of `rows` rows has in one group, and where those of (row, block of k) lie. cuBLAS
/// documentation, "1D block scaling factors layout" and "128-element 1D and 128x128 2D block scaling".
struct ScaleLayout {
  Scaling scaling = Scaling::none;
  bool weights = false;
  std::int64_t rows = 0, k = 0;
  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t k_index) const;
};

/// Device addresses of one launch; scales are null for BF16.
struct MatmulOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  void* d = nullptr;
  const void* x_scale = nullptr;
  const void* w_scale = nullptr;
};

/// What cuBLASLt creates, destroyed by its own function.
template <class T, cublasStatus_t (*destroy)(T*)>
struct Destroyer {
  void operator()(T* object) const { (void)destroy(object); }
};
template <class T, cublasStatus_t (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroyer<T, destroy>>;

/// The algorithm that cuBLASLt's heuristic puts first. Throws Skip where it has none.
class Matmul {
 public:
  Matmul(const Bench& bench, const MatmulShape& shape);
  void launch(cudaStream_t stream, const MatmulOperands& operands);

 private:
  void describe_operation();
  void choose_algorithm();
  MatmulShape shape_;
  Buffer workspace_;
  cublasLtHandle_t handle_;
  Owned<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy> operation_;
  Owned<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy> w_, x_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace moeline::bench

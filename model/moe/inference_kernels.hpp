// A list of kernels with linear layers in it: in FP8 each brings the cast of its input along.
#pragma once

#include <utility>
#include <vector>

#include "architecture/architecture.hpp"
#include "moe/kernels.hpp"

namespace moeline {

class Linear {
 public:
  explicit Linear(WeightType weights) : fp8_(weights == WeightType::fp8) {}

  void add(Operator op) { ops_.push_back(std::move(op)); }

  /// m x k times k x n. `cast_input`: false where the input is in FP8 already.
  void project(const char* name, double m, double n, double k, bool cast_input = true) {
    if (fp8_ && cast_input) add(kernels::cast(std::string("cast input of ") + name, m, k));
    add(kernels::gemm(fp8_ ? Family::gemm_fp8 : Family::gemm_bf16, name, m, n, k));
  }

  /// SwiGLU of rows x 2 ffn, with the cast of its result where the next GEMM is FP8.
  void swiglu(const char* name, double rows, double ffn) {
    const double out = fp8_ ? kernels::kFp8 : kernels::kBf16;
    add(kernels::memory(Family::swiglu, name, rows * ffn * (2 * kernels::kBf16 + out)));
  }

  [[nodiscard]] bool fp8() const { return fp8_; }
  [[nodiscard]] const std::vector<Operator>& ops() const { return ops_; }

 private:
  bool fp8_;
  std::vector<Operator> ops_;
};

}  // namespace moeline

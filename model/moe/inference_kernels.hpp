// A list of kernels with linear layers in it: below BF16 each brings the cast of its input along.
#pragma once

#include <utility>
#include <vector>

#include "architecture/architecture.hpp"
#include "moe/kernels.hpp"

namespace moeline {

class Linear : public kernels::KernelList {
 public:
  /// `tensor_format`: that its GEMMs multiply in.
  explicit Linear(Precision tensor_format) : precision_(tensor_format) {}

  /// m x k times k x n. `cast_input`: false where it is cast already.
  void project(const char* module, const char* name, double m, double n, double k, bool cast_input = true) {
    if (casts() && cast_input) {
      add(module, kernels::linear_cast(precision_, std::string("cast input of ") + name, m, n, k));
    }
    add(module, kernels::linear_gemm(precision_, name, m, n, k));
  }

  /// SwiGLU of rows x 2 ffn, with the cast of its result for the next GEMM.
  void swiglu(const char* module, const char* name, double rows, double ffn) {
    add(module, kernels::memory(Family::swiglu, name, rows * ffn * (2 * kernels::kBf16 + number_bytes(precision_))));
  }

  /// That its GEMMs multiply in.
  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool casts() const { return precision_ != Precision::bf16; }

 private:
  Precision precision_;
};

}  // namespace moeline

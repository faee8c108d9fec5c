// A list of kernels with linear layers in it: below BF16 each brings the cast of its input along.
#pragma once

#include <utility>
#include <vector>

#include "moe/kernels.hpp"
#include "moe/rank_work.hpp"

namespace moeline {

/// Queries and keys turned, new keys and values written into the cache: so many bytes in all.
inline Operator rotary_store(double bytes) {
  return as_small(SmallKernel::rotary_store, kernels::memory(Family::strided, "rotary q and k, write cache", bytes));
}

class Linear : public kernels::KernelList {
 public:
  /// `stored`: that its weights are read in; its GEMMs multiply in what the rank's tensor cores take them as.
  Linear(const RankWork& work, Precision stored) : precision_(work.tensor_format(stored)), stored_(stored) {}

  /// m x k times k x n. `cast_input`: false where it is cast already.
  void project(const char* module, const char* name, double m, double n, double k, bool cast_input = true) {
    if (casts() && cast_input) {
      add(module, kernels::linear_cast(precision_, std::string("cast input of ") + name, m, n, k));
    }
    const bool packed = precision_ == Precision::bf16 && stored_ != Precision::bf16;
    add(module,
        packed ? kernels::unpacking_gemm(stored_, name, m, n, k) : kernels::linear_gemm(precision_, name, m, n, k));
  }

  /// Of rows x `in` numbers, gates included, to rows x `out`, with the cast of its result for the next GEMM.
  void activate(const char* module, const char* name, double rows, double in, double out) {
    const double bytes = rows * (in * kernels::kBf16 + out * number_bytes(precision_));
    add(module, as_small(SmallKernel::activation, kernels::memory(Family::swiglu, name, bytes)));
  }

  /// That its GEMMs multiply in.
  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool casts() const { return precision_ != Precision::bf16; }

 private:
  Precision precision_, stored_;
};

}  // namespace moeline

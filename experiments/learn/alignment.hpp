// Which operator of the model each kernel of a measured step is of: the order of both is kept, an operator may be
// several kernels or none, and a kernel may be of no operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/learn/kernel_kind.hpp"

namespace moeline {

/// What the alignment may know of a kernel of the trace.
struct AlignedKernel {
  KernelKinds kinds;
  std::string name{};  ///< that an operator may bear as well, as in traces of our own
  double flops = 0;    ///< 0: not known
};

/// What it may know of an operator.
struct AlignedOperator {
  KernelKind kind = KernelKind::plain;
  std::string name{};
  double flops = 0;
};

inline constexpr std::int32_t kUnassigned = -1;

/// By kernel, the index of its operator, ascending but for kUnassigned. The assignment costs least: kernels of an
/// operator's kind cost nothing, kernels that finish what it began little, plain ones (copies, element-wise) and others
/// that pass over memory some, and so does a kernel without an operator or an operator without a kernel, by what it is:
/// norms and casts are often part of another kernel, products and attention never, and a product of other FLOPs is
/// another one. A kernel of another kind is never an operator's. A dynamic programme over kernels x operators; memory
/// is two bytes for each pair.
[[nodiscard]] std::vector<std::int32_t> align(const std::vector<AlignedKernel>& kernels,
                                              const std::vector<AlignedOperator>& operators);

}  // namespace moeline

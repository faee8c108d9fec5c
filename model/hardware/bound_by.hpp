// What a kernel's time goes by.
#pragma once

#include "hardware/price.hpp"

namespace moeline {

enum class BoundBy {
  compute,        ///< the tensor cores
  memory,         ///< HBM, and the L2 ports on the way
  communication,  ///< links between GPUs, or other ranks
  launch,         ///< what any kernel costs, whatever its work
  unknown,
};
inline constexpr std::size_t kBoundBys = static_cast<std::size_t>(BoundBy::unknown) + 1;

/// Communication: every kernel that communicates. Launch: compute kernels whose FLOPs and bytes take less time at the
/// machine's peaks than its smallest kernel does. Compute, memory: the branch of the cost curve that binds, or, where
/// it has none, the greater of FLOPs and bytes at the peaks. Unknown: kernels that neither multiply nor move much, and
/// go by tokens and experts (top-k, layouts, counts).
[[nodiscard]] BoundBy bound_by(const Operator& op, const Price& price, const MachineFacts& machine,
                               const KernelSet& kernels);

}  // namespace moeline

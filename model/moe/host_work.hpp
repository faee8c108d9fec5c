// What the host of an eager training step does: modules cost it time, not kernels.
#pragma once

#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

/// us that the host of Megatron-Core spends on each kernel of a phase ("attn(B)") until it is launched, on the
/// processor of a DGX H100 that does nothing else; `experts`: of a layer, on all ranks. A module's calls take their
/// time whatever they launch; it is spread over the module's kernels. Of `captured` ones the first has the graph's
/// launch.
[[nodiscard]] std::vector<double> host_us(const std::string& phase, const std::vector<Operator>& ops,
                                          const std::vector<bool>& captured, int experts);

}  // namespace moeline

// What the host of an eager training step does: modules cost it time, not kernels.
#pragma once

#include <string>
#include <vector>

#include "moe/operator.hpp"

namespace moeline {

/// us that the host of Megatron-Core spends on each kernel of a phase ("attn(B)") until it is launched, on the
/// processor of a DGX H100 that does nothing else. A module's call takes its time whatever it launches; it is spread
/// over the module's kernels. `captured`: kernels of graphs, of which the first has the graph's launch. `chunks`: in
/// which rows are sorted beside NCCL's all-to-all, one for each expert; 0 with other dispatchers. Not in it:
/// checkpoints of whole layers, the optimizer, and what is done once a step.
[[nodiscard]] std::vector<double> host_us(const std::string& phase, const std::vector<Operator>& ops,
                                          const std::vector<bool>& captured, int chunks);

}  // namespace moeline

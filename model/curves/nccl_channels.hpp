// On how many SMs NCCL's kernels run: one block for each channel that they use.
#pragma once

#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// SMs that a collective or a message of NCCL holds, by the rules of NCCL 2.28 (src/enqueue.cc, graph/connect.cc): of
/// the channels that the machine has, `nccl_channels` inside a node and `nccl_channels_between` nodes, as many as get
/// 32 KiB of the message; an all-to-all so many for each peer, of which between nodes eight share one. At least one,
/// and one SM is left to others. 0: of a machine whose channels are not known, of which none are charged.
[[nodiscard]] int nccl_channels(const Operator& op, const MachineFacts& machine);

}  // namespace moeline

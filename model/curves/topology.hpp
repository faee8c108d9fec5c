// How GPUs hang together: nodes of gpus_per_node, leaf switches, their uplinks.
//
// Ranks fill nodes, and nodes fill leaves, in order. Without rails a leaf switch takes all NICs of its `leaf_nodes`
// nodes; with rails (`rail_optimized`) it takes those of one index, of `leaf_nodes` nodes. A leaf's uplinks carry 1 /
// `oversubscription` of what its NICs can send, shared evenly. A transfer's kernels wait for each other over all ranks
// (DeepEP's flow control and its receive counts), so the rank with the slowest NIC or NVLink sets the pace of all.
//
// Uplinks bind a transfer by itself: two that run at once share NICs, and are not slowed further by their uplinks.
#pragma once

#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// GB/s of one GPU, each direction: of its NICs together, of NVLink, and of its share of the leaf's uplinks.
[[nodiscard]] double nic_rate_GBps(const MachineFacts& machine);
[[nodiscard]] double nvlink_rate_GBps(const MachineFacts& machine);
[[nodiscard]] double uplink_rate_GBps(const MachineFacts& machine);

/// Share of what a rank sends to other nodes that goes to another leaf. Of collectives whose ranks send to the next
/// one alone: of their hops. Of an all-to-all destinations are uniform over nodes in normal mode, to the GPU of the
/// own index, and over GPUs in low-latency mode. 0 with `leaf_nodes` 0, all nodes under one leaf, but for low-latency
/// messages from rail to rail. REQUIRES: more than one node.
[[nodiscard]] double cross_leaf_share(const Operator& op, const MachineFacts& machine);

/// Whether uplinks are narrower than the NICs, and this transfer uses them.
[[nodiscard]] bool uplinks_may_bind(const Operator& op, const MachineFacts& machine);

/// us of a small message between the farthest of so many ranks: over NVLink inside a node; where leaves are not
/// described, across leaves.
[[nodiscard]] double farthest_latency_us(int ranks, const MachineFacts& machine);

}  // namespace moeline

// NCCL's transfers in training: activations between stages of a pipeline, gradients and parameters between replicas.
#pragma once

#include "moe/operator.hpp"

namespace moeline {

/// Ranks that hold the same parameters, and how many of them share a node.
struct Replicas {
  int ranks = 1;
  int per_node = 1;
};

/// One rank's message to another. `same_node`: over NVLink, else over the NIC. `reach`: ranks that lie between.
[[nodiscard]] Operator send(double bytes, bool same_node, int reach);

/// `bytes` of each replica are summed, and each keeps 1/ranks of the sum. Rings, one for each GPU of a node and its
/// NIC: every GPU passes on (ranks - 1) / ranks of all bytes over NVLink, and its NIC 1/per_node of that (NCCL; Thakur
/// et al. 2005 for the volume).
[[nodiscard]] Operator reduce_scatter(double bytes, const Replicas& replicas);
/// The way back: each replica has 1/ranks of `bytes`, and all get the whole.
[[nodiscard]] Operator all_gather(double bytes, const Replicas& replicas);

}  // namespace moeline

// NCCL's transfers: in training activations between stages of a pipeline, gradients and parameters between replicas; in
// inference what the ranks that share a layer exchange, for which serving stacks have kernels of their own, too.
#pragma once

#include "moe/operator.hpp"

namespace moeline {

/// Where the ranks of a transfer lie.
struct Reach {
  int gpus = 1;                ///< between the first and the last of them, all counted
  double neighbour_nodes = 0;  ///< nodes from one rank to the next that is on another; 0: all in one node
};

/// Ranks that hold the same parameters, or share a layer.
struct Replicas {
  int ranks = 1;
  int per_node = 1;  ///< of these
  Reach reach;
};

/// One rank's message to another: over the NIC, or NVLink within a node.
[[nodiscard]] Operator send(double bytes, const Reach& reach);

/// `bytes` of each replica are summed, and each keeps 1/ranks of the sum. Rings, one for each GPU of a node and its
/// NIC, share the bytes: a GPU passes on (ranks - 1) / ranks of all, over its NIC in its own ring and over NVLink in
/// the others of its node (NCCL; Thakur et al. 2005 for the volume).
[[nodiscard]] Operator reduce_scatter(double bytes, const Replicas& replicas);
/// The way back: each replica has 1/ranks of `bytes`, and all get the whole.
[[nodiscard]] Operator all_gather(double bytes, const Replicas& replicas);

/// Each has `bytes`, and all get the sum: the one and then the other.
[[nodiscard]] Operator all_reduce(double bytes, const Replicas& replicas);
/// The same by a serving stack's kernel of one node, in which ranks read each other's memory. Larger messages than
/// `most_bytes`, and those between nodes, go by NCCL.
[[nodiscard]] Operator custom_all_reduce(double bytes, const Replicas& replicas, double most_bytes);
/// Each has `bytes`, 1/ranks of them for each rank, itself included.
[[nodiscard]] Operator all_to_all(double bytes, const Replicas& replicas);

/// A message or a gather as DeepEP's second version has it: by NICs and copy engines, without SMs (its README).
[[nodiscard]] Operator without_sms(Operator transfer);

}  // namespace moeline

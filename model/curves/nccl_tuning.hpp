// Collectives of NCCL that leave a node, by the cost model with which NCCL chooses how to run them.
#pragma once

#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// How NCCL would run a collective, and how long it takes.
struct NcclChoice {
  double us = 0;
  double latency_us = 0;               ///< of it, whatever the bytes
  double nic_bytes = 0;                ///< that a rank sends to another node
  const char* link = "NIC";            ///< that its bytes wait for; or "NVLink"
  const char* algorithm = "messages";  ///< "tree" (all-reduce alone), "ring", or "messages" from rank to rank
  const char* protocol = "Simple";     ///< "LL", "LL128" or "Simple"
};

/// An all-reduce, all-gather or reduce-scatter takes the quickest of trees and rings by three protocols, each latency +
/// bytes / bandwidth, with the base latencies, hops, shares of bytes and corrections of NCCL 2.28 (src/graph/tuning.cc,
/// the same from 2.20 to 2.30 but for the base of trees). That model compares ways and leaves out what all cost alike,
/// which is fitted: nccl_call_us of every call, nccl_nic_share of the NICs' rate, and nccl_ramp_us. An all-to-all or
/// one message goes from rank to rank: the call, nccl_peer_us for each rank on another node behind the first, and what
/// the own NIC carries; NVLink's part is hidden behind it. REQUIRES: a collective that leaves the node.
[[nodiscard]] NcclChoice nccl_choice(const Operator& op, const MachineFacts& machine);

}  // namespace moeline

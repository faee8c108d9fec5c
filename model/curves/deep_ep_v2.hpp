// DeepEP's second version: how long its transfers take, and how many SMs it asks for.
#pragma once

#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// What its kernels were measured to take: least squares of the logarithms of predicted over measured, on the rows of
/// calib/data/deepep_v2/transfers.csv marked `fitted` (tests/calib/deep_ep_v2_test.cpp checks that no other values do
/// better).
struct DeepEpV2Constants {
  double dispatch_start_us = 10.78, combine_start_us = 5.76;                      ///< inside a node
  double efa_dispatch_start_us = 129.5, efa_combine_start_us = 107.6;             ///< between nodes over EFA
  double read_us_per_MB = 4.836, sum_us_per_MB = 13.53, write_us_per_MB = 23.15;  ///< of one SM
  double nvlink4_share = 0.5795, nvlink5_share = 0.7281;  ///< of the links' peak: Hopper's, Blackwell's
  double infiniband_share = 0.917, efa_share = 0.8072;    ///< of the NICs'
  // Epilogues: us before anything moves, and shares of HBM's peak.
  double copy_start_us = 7.236, reduce_start_us = 0.881;
  double copy_share = 0.7049;    ///< of tokens that stay as they came
  double expand_share = 0.5961;  ///< of those that become several rows
  double reduce_share = 0.7695;
  double token_us_per_MB = 134;  ///< of what one warp sums up for a token, which no SM more makes faster
  /// Messages that follow each other between nodes over InfiniBand, each of the NIC's latency. Assumed: out, forwarded,
  /// acknowledged. Nobody has published times of few tokens there.
  double hops = 3;
};

/// us. A transfer starts up, and then goes at the pace of the slowest: of its SMs, NVLink, or the NICs.
struct DeepEpV2Times {
  double start = 0;  ///< launch, barriers and exchange of counts, the latency between ranks left out
  double copies = 0, nvlink = 0, nic = 0;

  [[nodiscard]] double total() const;
  [[nodiscard]] const char* bound() const;
};

/// `op`: of deep_ep_v2.cpp, on so many SMs.
[[nodiscard]] DeepEpV2Times deep_ep_v2_times(const Operator& op, int sms, const MachineFacts& machine,
                                             const DeepEpV2Constants& constants = {});

/// Of the NICs' peak, what its transfers reach.
[[nodiscard]] double deep_ep_v2_nic_share(const MachineFacts& machine, const DeepEpV2Constants& constants = {});

/// us of an epilogue on so many SMs.
[[nodiscard]] double deep_ep_v2_epilogue_us(const Operator& op, int sms, const MachineFacts& machine,
                                            const DeepEpV2Constants& constants = {});

/// What the library reckons SMs from: ranks, nodes of a kind of GPU, and a gate by which every choice of experts is as
/// likely.
struct DeepEpV2Group {
  int ranks, gpus_per_node;
  int experts, top_k;
  bool hybrid;
  bool overlaps;  ///< it shall leave SMs to what computes beside it
};

/// SMs by get_theoretical_num_sms (deep_ep/buffers/elastic.py): those that keep up with the slower link at 200 GB/s
/// read and 50 GB/s written each, and a quarter more; even, 4 at least, 64 where nothing overlaps. NVLink counts nine
/// tenths of its rate. REQUIRES: experts divide by the ranks, and top_k is at most as many.
[[nodiscard]] int deep_ep_v2_sms(const DeepEpV2Group& group, const MachineFacts& machine);

}  // namespace moeline

// Perplexity's all-to-all: how long a whole transfer takes.
#pragma once

#include "curves/machine_facts.hpp"
#include "moe/operator.hpp"

namespace moeline {

/// Least squares of the logarithms on the rows of calib/data/pplx/transfers.csv marked `fitted`
/// (tests/calib/pplx_test.cpp checks that no other values do better).
struct PplxConstants {
  // us before the first byte, in a node and between nodes, where a proxy on the host posts the messages.
  double node_dispatch_us = 17.35, node_combine_us = 21.22;
  double dispatch_us = 31.94, combine_us = 26.06;
  double efa_dispatch_us = 117.5, efa_combine_us = 69.27;
  double nvlink_dispatch_share = 0.455, nvlink_combine_share = 0.6641;  ///< of the links' peak
  double infiniband_share = 0.9159, efa_share = 0.8291;                 ///< of the NICs'
};

/// us: it starts, and then NVLink and NICs carry at the same time. `op`: of moe/pplx.cpp.
[[nodiscard]] double pplx_us(const Operator& op, const MachineFacts& machine, const PplxConstants& constants = {});

}  // namespace moeline

#include "curves/pplx.hpp"

#include <algorithm>

#include "curves/curve.hpp"
#include "curves/topology.hpp"

namespace moeline {

double pplx_us(const Operator& op, const MachineFacts& machine, const PplxConstants& c) {
  const bool out = op.family == Family::low_latency_dispatch;
  const bool efa = machine.nic() == Nic::efa;
  const double nvlink_us = bytes_at_peak_us(op.traffic.nvlink_bytes, nvlink_rate_GBps(machine)) /
                           (out ? c.nvlink_dispatch_share : c.nvlink_combine_share);
  if (op.traffic.wire_bytes == 0) return (out ? c.node_dispatch_us : c.node_combine_us) + nvlink_us;
  const double nic_us =
      bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine)) / (efa ? c.efa_share : c.infiniband_share);
  const double start_us = efa ? (out ? c.efa_dispatch_us : c.efa_combine_us) : (out ? c.dispatch_us : c.combine_us);
  return start_us + std::max(nvlink_us, nic_us);
}

}  // namespace moeline

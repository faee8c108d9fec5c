#include "curves/deep_ep_v2.hpp"

#include <algorithm>
#include <cmath>

#include "curves/curve.hpp"
#include "curves/topology.hpp"
#include "routing/routing.hpp"

namespace moeline {
namespace {

bool dispatches(const Operator& op) { return op.family != Family::combine; }

bool is_blackwell(const MachineFacts& machine) { return machine.fp4_tflops > 0; }

double start_us(const Operator& op, const MachineFacts& machine, const DeepEpV2Constants& c) {
  const bool between = op.traffic.wire_bytes > 0;
  if (between && machine.nic() == Nic::efa) return dispatches(op) ? c.efa_dispatch_start_us : c.efa_combine_start_us;
  const double in_node = dispatches(op) ? c.dispatch_start_us : c.combine_start_us;
  return in_node + (between ? c.hops * machine.nic_latency_us : 0);
}

}  // namespace

double DeepEpV2Times::total() const { return start + std::max({copies, nvlink, nic}); }

const char* DeepEpV2Times::bound() const {
  const double most = std::max({copies, nvlink, nic});
  if (start > most) return "latency";
  return most == nic ? "NIC" : most == nvlink ? "NVLink" : "SMs";
}

double deep_ep_v2_nic_share(const MachineFacts& machine, const DeepEpV2Constants& c) {
  return machine.nic() == Nic::efa ? c.efa_share : c.infiniband_share;
}

DeepEpV2Times deep_ep_v2_times(const Operator& op, int sms, const MachineFacts& machine, const DeepEpV2Constants& c) {
  const Traffic& traffic = op.traffic;
  const double nvlink_share = is_blackwell(machine) ? c.nvlink5_share : c.nvlink4_share;
  return {.start = start_us(op, machine, c),
          .copies = (traffic.read_bytes * c.read_us_per_MB + traffic.summed_bytes * c.sum_us_per_MB +
                     traffic.copied_bytes * c.write_us_per_MB) /
                    1e6 / sms,
          .nvlink = bytes_at_peak_us(traffic.nvlink_bytes, machine.nominal_nvlink_GBps() * machine.slowest_nvlink) /
                    nvlink_share,
          .nic = bytes_at_peak_us(traffic.wire_bytes, nic_rate_GBps(machine)) / deep_ep_v2_nic_share(machine, c)};
}

double deep_ep_v2_epilogue_us(const Operator& op, int sms, const MachineFacts& machine, const DeepEpV2Constants& c) {
  const double read = op.traffic.read_bytes, written = op.traffic.copied_bytes;
  const bool sums = op.traffic.tokens > 0;  // each a warp's work
  const double share = sums ? c.reduce_share : written > read ? c.expand_share : c.copy_share;
  const double us = bytes_at_peak_us(read + written, machine.hbm_GBps * share) * machine.sms / sms;
  if (!sums) return c.copy_start_us + us;
  return c.reduce_start_us + std::max(us, read / op.traffic.tokens / 1e6 * c.token_us_per_MB);
}

int deep_ep_v2_sms(const DeepEpV2Group& group, const MachineFacts& machine) {
  constexpr double kReads_GBps = 200, kWrites_GBps = 50, kMargin = 1.25, kNvlink = 0.9;
  constexpr int kLeast = 4, kAlone = 64;
  const int node_size = std::min(group.ranks, group.gpus_per_node);
  const double nodes = static_cast<double>(group.ranks) / node_size;
  const double reached = expected_places(group.ranks, group.experts, group.top_k);
  const bool by_nodes = nodes > 1 && group.hybrid;
  // Of each row that arrives.
  double read = 1 / reached, written = 0, rdma = 0, nvlink = 0;
  if (by_nodes) {
    const double of_nodes = expected_places(static_cast<int>(nodes), group.experts, group.top_k) / reached;
    read += of_nodes;
    written = 1 / reached + of_nodes / nodes + 1;
    rdma = of_nodes * (1 - 1 / nodes);
    nvlink = 1 - 1.0 / node_size;
  } else {
    rdma = 1 - 1 / nodes;
    written = (nodes > 1 ? 1 / reached : 0) + 1 / nodes;
    nvlink = 1 / nodes * (1 - 1.0 / node_size);
  }
  const double nic_GBps = machine.nic_GBps * machine.nics_per_gpu,
               nvlink_GBps = machine.nominal_nvlink_GBps() * kNvlink;
  // The direct way goes by NVLink alone, where there is one.
  const bool by_nic = by_nodes || nvlink == 0;
  const double rows_us = std::max(by_nic ? rdma / nic_GBps : 0, nvlink / nvlink_GBps);
  const int all = static_cast<int>(machine.sms);
  if (rows_us == 0) return all;
  const double wanted = std::max(read / kReads_GBps, written / kWrites_GBps) / rows_us;
  int sms = std::max(kLeast, static_cast<int>(std::ceil(wanted * kMargin)));
  sms += sms % 2;
  return std::min(all, group.overlaps ? sms : std::max(sms, kAlone));
}

}  // namespace moeline

// The all-to-all of DeepEP, nothing beside it. How it works: moe/all_to_all.cpp.
#include <algorithm>

#include "hardware/curve.hpp"

namespace moeline {
namespace {

bool between_nodes(const Operator& op, const MachineFacts& machine) { return op.traffic.ranks > machine.gpus_per_node; }

// Over the NIC: what leaves the node, and what stays in it if the library sends that out as well (February 2025).
std::vector<Term> nic_terms(const Operator& op, double own_node_bytes, Constant nic, Constant own_node,
                            const MachineFacts& machine) {
  return {{nic, bytes_at_peak_us(op.traffic.wire_bytes, machine.nic_GBps)},
          {own_node, bytes_at_peak_us(own_node_bytes, machine.nic_GBps)}};
}

// Start-up, and the time to fill the pipeline of hops: RDMA and NVLink between nodes, NVLink alone within one. Both
// grow with the record. A pipeline fills with the tokens of one chunk per SM.
double hops(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kChunk = 20;  // tokens; DeepEP's configurations use 4 to 32
  const double tokens = op.traffic.tokens / sms;
  return 1 + (between_nodes(op, machine) ? 2 : 1) * tokens / (tokens + kChunk);
}

Curve normal_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  // Between nodes combine adds up twice, within a node once: then its copies cost what those of dispatch do.
  const bool adds_on_the_way = op.family == Family::combine && between_nodes(op, machine);
  const Constant copy = adds_on_the_way ? Constant::combine_copy : Constant::dispatch_copy;
  return {{{Constant::all_to_all_hop, traffic.record_bytes / 1e3 * hops(op, sms, machine)}},
          {{"NIC", nic_terms(op, traffic.rdma_bytes - traffic.wire_bytes, Constant::normal_nic,
                             Constant::normal_own_node, machine)},
           {"NVLink", {{Constant::normal_nvlink, bytes_at_peak_us(traffic.nvlink_bytes, machine.nvlink_GBps)}}},
           {"SMs", {{copy, traffic.copied_bytes / 1e6 / sms}}}}};
}

// NIC and NVLink work at the same time. With a share of messages that leave the node comes the same share of the
// latency between nodes: EP32 starts later than EP16, and both later than one node (H100's table at 2 tokens: 27, 22
// and 15 us).
Curve low_latency_curve(const Operator& op, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  Branch nic{"NIC",
             nic_terms(op, traffic.nvlink_bytes, Constant::low_latency_nic, Constant::low_latency_own_node, machine)};
  nic.terms.push_back({Constant::low_latency_reach, traffic.wire_bytes / traffic.copied_bytes});
  const double dispatches = op.family == Family::low_latency_dispatch ? 1 : 0;
  const double nvlink_us = bytes_at_peak_us(traffic.nvlink_bytes, machine.nvlink_GBps);
  return {{{Constant::low_latency_startup, 1}},
          {std::move(nic),
           {"NVLink", {{Constant::low_latency_node_dispatch, dispatches}, {Constant::low_latency_nvlink, nvlink_us}}}}};
}

}  // namespace

Curve transfer_curve(const Operator& op, int sms, const MachineFacts& machine) {
  return is_low_latency(op.family) ? low_latency_curve(op, machine) : normal_curve(op, sms, machine);
}

Curve hold_curve(const Operator& op) {
  return {{{Constant::low_latency_hold, 1}, {Constant::low_latency_hold_copy, op.traffic.copied_bytes / 1e6}}, {}};
}

double links_us(const Operator& op, const MachineFacts& machine) {
  return std::max(bytes_at_peak_us(op.traffic.wire_bytes, machine.nic_GBps),
                  bytes_at_peak_us(op.traffic.nvlink_bytes, machine.nvlink_GBps));
}

Constant overlapped_slowdown(Family family) {
  if (family == Family::dispatch) return Constant::dispatch_overlapped;
  return family == Family::dispatch_cached ? Constant::dispatch_cached_overlapped : Constant::combine_overlapped;
}

}  // namespace moeline

// The all-to-all of DeepEP, nothing beside it. How it works: moe/all_to_all.cpp.
#include <algorithm>

#include "base/error.hpp"
#include "curves/curve.hpp"
#include "curves/topology.hpp"

namespace moeline {
namespace {

constexpr const char* kCopies = "SMs";

bool between_nodes(const Operator& op, const MachineFacts& machine) { return op.traffic.ranks > machine.gpus_per_node; }

// Over the NIC: what leaves the node, and what stays in it if the library sends that out as well (February 2025).
std::vector<Term> nic_terms(const Operator& op, double own_node_bytes, Constant nic, Constant own_node,
                            const MachineFacts& machine) {
  return {{nic, bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine))},
          {own_node, bytes_at_peak_us(own_node_bytes, nic_rate_GBps(machine))}};
}

// What leaves the leaf, at the NIC's efficiency. Nothing leaves it to reach the own node, but from rail to rail.
void add_uplink(const Operator& op, double own_node_bytes, Constant nic, Constant own_node, const MachineFacts& machine,
                Curve& curve) {
  if (!uplinks_may_bind(op, machine)) return;
  const double cross_bytes = op.traffic.wire_bytes * cross_leaf_share(op, machine);
  const bool changes_rail = machine.rail_optimized > 0 && is_low_latency(op.family);
  curve.branches.push_back(
      {"uplink",
       {{nic, bytes_at_peak_us(cross_bytes, uplink_rate_GBps(machine))},
        {own_node, bytes_at_peak_us(changes_rail ? own_node_bytes : 0, uplink_rate_GBps(machine))}}});
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
  const double own_node_bytes = traffic.rdma_bytes - traffic.wire_bytes;
  const double nvlink_us = bytes_at_peak_us(traffic.nvlink_bytes, nvlink_rate_GBps(machine));
  Curve curve{{{Constant::all_to_all_hop, traffic.record_bytes / 1e3 * hops(op, sms, machine)}},
              {{"NIC", nic_terms(op, own_node_bytes, Constant::normal_nic, Constant::normal_own_node, machine)},
               {"NVLink", {{Constant::normal_nvlink, nvlink_us}}},
               {kCopies, {{copy, traffic.copied_bytes / 1e6 / sms}}}}};
  add_uplink(op, own_node_bytes, Constant::normal_nic, Constant::normal_own_node, machine, curve);
  return curve;
}

// NIC and NVLink work at the same time, but the same warps issue the messages of both, so NVLink's keep the NIC waiting
// for a part of their time. With a share of messages that leave the node comes the same share of the latency between
// nodes: EP32 starts later than EP16, and both later than one node (H100's table at 2 tokens: 27, 22 and 15 us).
Curve low_latency_curve(const Operator& op, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  const double leaving = traffic.copied_bytes > 0 ? traffic.wire_bytes / traffic.copied_bytes : 0;
  const double dispatches = op.family == Family::low_latency_dispatch ? 1 : 0;
  const double nvlink_us = bytes_at_peak_us(traffic.nvlink_bytes, nvlink_rate_GBps(machine));
  Curve curve{
      {{Constant::low_latency_startup, 1}},
      {{"NIC", nic_terms(op, traffic.nvlink_bytes, Constant::low_latency_nic, Constant::low_latency_own_node, machine)},
       {"NVLink", {{Constant::low_latency_node_dispatch, dispatches}, {Constant::low_latency_nvlink, nvlink_us}}}}};
  add_uplink(op, traffic.nvlink_bytes, Constant::low_latency_nic, Constant::low_latency_own_node, machine, curve);
  for (Branch& branch : curve.branches) {
    if (branch.bound == "NVLink") continue;
    branch.terms.push_back({Constant::low_latency_reach, leaving});
    branch.terms.push_back({Constant::low_latency_waits, between_nodes(op, machine) ? nvlink_us : 0});
  }
  return curve;
}

}  // namespace

Curve transfer_curve(const Operator& op, int sms, const MachineFacts& machine) {
  return is_low_latency(op.family) ? low_latency_curve(op, machine) : normal_curve(op, sms, machine);
}

Curve hold_curve(const Operator& op) {
  return {{{Constant::low_latency_hold, 1}, {Constant::low_latency_hold_copy, op.traffic.copied_bytes / 1e6}}, {}};
}

double links_us(const Operator& op, const MachineFacts& machine) {
  const double uplink_bytes = uplinks_may_bind(op, machine) ? op.traffic.wire_bytes * cross_leaf_share(op, machine) : 0;
  return std::max({bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine)),
                   bytes_at_peak_us(op.traffic.nvlink_bytes, nvlink_rate_GBps(machine)),
                   bytes_at_peak_us(uplink_bytes, uplink_rate_GBps(machine))});
}

Constant copy_stretch(Family family) {
  if (family == Family::dispatch) return Constant::dispatch_stretch;
  return family == Family::dispatch_cached ? Constant::dispatch_cached_stretch : Constant::combine_stretch;
}

double copying_us(const Curve& transfer, double stretch, const Constants& constants) {
  Curve copying{transfer.always, {}};
  for (const Branch& branch : transfer.branches) {
    if (branch.bound == kCopies) copying.branches.push_back(branch);
  }
  MOELINE_CHECK(copying.branches.size() == 1, "what SMs copy");
  for (Term& term : copying.branches[0].terms) term.feature *= stretch;
  return evaluate(copying, constants).us;
}

}  // namespace moeline

#include "curves/topology.hpp"

#include <algorithm>

namespace moeline {
namespace {

double nodes_of(int ranks, const MachineFacts& machine) { return std::max(1.0, ranks / machine.gpus_per_node); }

// Of a full leaf: the last one may hold fewer, whose ranks cross more over uplinks that they share with fewer.
double nodes_under_leaf(double nodes, const MachineFacts& machine) {
  return machine.leaf_nodes > 0 ? std::min(machine.leaf_nodes, nodes) : nodes;
}

// Of the hops of a ring, or of a pipeline's messages: those that begin in one leaf and end in another.
double neighbours_cross_leaf(double nodes, const MachineFacts& machine) {
  return machine.leaf_nodes > 0 ? std::min(1.0, nodes / machine.leaf_nodes) : 0;
}

}  // namespace

double nic_rate_GBps(const MachineFacts& machine) {
  return machine.nic_GBps * machine.nics_per_gpu * machine.slowest_nic;
}

double nvlink_rate_GBps(const MachineFacts& machine) { return machine.nvlink_GBps * machine.slowest_nvlink; }

double uplink_rate_GBps(const MachineFacts& machine) {
  return machine.nic_GBps * machine.nics_per_gpu / machine.oversubscription;
}

double cross_leaf_share(const Operator& op, const MachineFacts& machine) {
  const bool to_the_next = is_collective(op.family) && op.family != Family::all_to_all;
  if (to_the_next) return neighbours_cross_leaf(op.traffic.neighbour_nodes, machine);
  const double nodes = nodes_of(op.traffic.ranks, machine);
  const double near = nodes_under_leaf(nodes, machine) - 1;
  const bool changes_rail = machine.rail_optimized > 0 && is_low_latency(op.family);
  return 1 - near / (nodes - 1) / (changes_rail ? machine.gpus_per_node : 1);
}

bool uplinks_may_bind(const Operator& op, const MachineFacts& machine) {
  return machine.oversubscription > 1 && op.traffic.wire_bytes > 0 && cross_leaf_share(op, machine) > 0;
}

double farthest_latency_us(int ranks, const MachineFacts& machine) {
  if (ranks <= machine.gpus_per_node) return machine.nvlink_latency_us;
  const bool one_leaf = machine.leaf_nodes > 0 && nodes_of(ranks, machine) <= machine.leaf_nodes;
  return one_leaf ? machine.leaf_latency_us : machine.nic_latency_us;
}

}  // namespace moeline

#include "moe/collectives.hpp"

namespace moeline {
namespace {

Operator collective(Family family, const char* name, const Reach& reach) {
  Operator op;
  op.name = name;
  op.family = family;
  op.traffic.ranks = reach.gpus;
  op.traffic.neighbour_nodes = reach.neighbour_nodes;
  return op;
}

void set_bytes(double over_nic, double over_nvlink, Operator& op) {
  op.traffic.rdma_bytes = op.traffic.wire_bytes = over_nic;
  op.traffic.nvlink_bytes = over_nvlink;
  op.traffic.payload_bytes = over_nic + over_nvlink;
}

Operator ring(Family family, const char* name, double bytes, const Replicas& replicas) {
  Operator op = collective(family, name, replicas.reach);
  const double passed_on = bytes * (replicas.ranks - 1) / replicas.ranks;
  const double over_nic = replicas.ranks > replicas.per_node ? passed_on / replicas.per_node : 0;
  set_bytes(over_nic, passed_on - over_nic, op);
  op.bytes = 2 * passed_on;
  return op;
}

}  // namespace

Operator send(double bytes, const Reach& reach) {
  Operator op = collective(Family::send, "ncclDevKernel_SendRecv", reach);
  const bool leaves_node = reach.neighbour_nodes > 0;
  set_bytes(leaves_node ? bytes : 0, leaves_node ? 0 : bytes, op);
  op.bytes = bytes;
  return op;
}

Operator reduce_scatter(double bytes, const Replicas& replicas) {
  return ring(Family::reduce_scatter, "ncclDevKernel_ReduceScatter", bytes, replicas);
}

Operator all_gather(double bytes, const Replicas& replicas) {
  return ring(Family::all_gather, "ncclDevKernel_AllGather", bytes, replicas);
}

}  // namespace moeline

#include "moe/collectives.hpp"

#include <algorithm>

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

// Of one message that all of the ranks have a part in. It was measured within a node alone.
Operator collective_of(double bytes, Family family, const char* name, const Replicas& replicas) {
  Operator op = collective(family, name, replicas.reach);
  op.traffic.members = replicas.ranks;
  op.traffic.members_per_node = std::min(replicas.ranks, replicas.per_node);
  op.traffic.message_bytes = bytes;
  if (replicas.ranks <= replicas.per_node) op.measured_as = "nccl_" + name_of(family);
  return op;
}

// `rounds`: how often the ring passes all on.
Operator ring(Family family, const char* name, double bytes, const Replicas& replicas, double rounds = 1) {
  Operator op = collective_of(bytes, family, name, replicas);
  const double passed_on = rounds * bytes * (replicas.ranks - 1) / replicas.ranks;
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

Operator all_reduce(double bytes, const Replicas& replicas) {
  return ring(Family::all_reduce, "ncclDevKernel_AllReduce", bytes, replicas, 2);
}

Operator custom_all_reduce(double bytes, const Replicas& replicas, double most_bytes) {
  if (bytes > most_bytes || replicas.ranks > replicas.per_node) return all_reduce(bytes, replicas);
  Operator op = all_reduce(bytes, replicas);
  op.name = "custom_all_reduce";
  op.measured_as = "custom_all_reduce";
  return op;
}

Operator all_to_all(double bytes, const Replicas& replicas) {
  Operator op = collective_of(bytes, Family::all_to_all, "ncclDevKernel_SendRecv", replicas);
  const double per_rank = bytes / replicas.ranks;
  const int near = std::min(replicas.ranks, replicas.per_node);
  set_bytes(per_rank * (replicas.ranks - near), per_rank * (near - 1), op);
  op.bytes = 2 * bytes;
  return op;
}

Operator without_sms(Operator transfer) {
  transfer.name = transfer.family == Family::send ? "deep_ep::elastic::pp_send" : "Memcpy PtoP (Device -> Device)";
  transfer.measured_as.clear();
  transfer.without_sms = true;
  return transfer;
}

}  // namespace moeline

#include "moe/collectives.hpp"

namespace moeline {
namespace {

Operator ring(Family family, const char* name, double bytes, const Replicas& replicas) {
  Operator op;
  op.name = name;
  op.family = family;
  op.traffic.ranks = replicas.ranks;
  const double passed_on = bytes * (replicas.ranks - 1) / replicas.ranks;
  if (replicas.ranks > replicas.per_node) op.traffic.wire_bytes = passed_on / replicas.per_node;
  op.traffic.rdma_bytes = op.traffic.wire_bytes;
  if (replicas.per_node > 1) op.traffic.nvlink_bytes = passed_on;
  op.bytes = 2 * passed_on;
  return op;
}

}  // namespace

Operator send(double bytes, bool same_node, int reach) {
  Operator op;
  op.name = "ncclDevKernel_SendRecv";
  op.family = Family::send;
  op.traffic.ranks = reach;
  (same_node ? op.traffic.nvlink_bytes : op.traffic.wire_bytes) = bytes;
  op.traffic.rdma_bytes = op.traffic.wire_bytes;
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

#include "moe/all_to_all.hpp"

#include <algorithm>

#include "moe/all_to_all_traffic.hpp"

namespace moeline {

double payload_bytes(const AllToAllWork& work, Precision precision) {
  return work.hidden * activation_bytes(precision);
}

Traffic sizes_of(const AllToAllWork& work) {
  Traffic traffic;
  traffic.ranks = work.ep;
  traffic.tokens = work.tokens;
  traffic.hidden = work.hidden;
  traffic.top_k = work.top_k;
  traffic.ranks_per_token = work.spread.ranks_per_token * work.spread.busiest_rank;
  traffic.experts = work.experts;
  return traffic;
}

bool in_one_node(const AllToAllWork& work) { return work.ep <= work.gpus_per_node; }

// The tables of serving stacks hold one node's.
std::string measured_in_node(const std::string& transfer, const AllToAllWork& work) {
  return in_one_node(work) ? transfer + "_node" : "";
}

// Destinations are uniform over nodes and ranks, so the own node's share of the copies is one in `nodes`. Where they
// are not, flow control lets no rank go ahead of the busiest, so that each is charged the busiest one's bytes.
Traffic traffic_of(const AllToAllWork& work, double payload, double record) {
  const double node_size = std::min(work.gpus_per_node, work.ep);
  const double nodes = work.ep / node_size;
  const double rdma_copies = nodes > 1 ? work.tokens * work.spread.nodes_per_token * work.spread.busiest_node : 0;
  const double nvlink_copies = work.tokens * work.spread.ranks_per_token * work.spread.busiest_rank;
  Traffic traffic = sizes_of(work);
  traffic.unequal = std::max(work.spread.busiest_rank, work.spread.busiest_node) > kMostEqual;
  traffic.rdma_bytes = rdma_copies * record;
  traffic.wire_bytes = traffic.rdma_bytes * (1 - 1 / nodes);
  traffic.nvlink_bytes = nvlink_copies * (1 - 1 / node_size) * record;
  traffic.copied_bytes = (rdma_copies + nvlink_copies) * record;
  traffic.record_bytes = record;
  traffic.payload_bytes = payload;
  return traffic;
}

// They go to ranks uniformly: own node and own rank have their share. Where they do not, the busiest rank's link is the
// last to be done.
Operator messages(Family family, Stage stage, const AllToAllWork& work, double message) {
  const double node_size = std::min(work.gpus_per_node, work.ep);
  Operator op;
  op.family = family;
  op.traffic = sizes_of(work);
  op.traffic.stage = stage;
  op.traffic.copied_bytes = work.tokens * work.top_k * message;
  op.traffic.unequal = work.spread.busiest_rank_rows > kMostEqual;
  const double busiest = op.traffic.copied_bytes * work.spread.busiest_rank_rows;
  op.traffic.wire_bytes = busiest * (1 - node_size / work.ep);
  op.traffic.nvlink_bytes = busiest * (node_size - 1) / work.ep;
  op.traffic.record_bytes = op.traffic.payload_bytes = message;  // as DeepEP's benchmark counts
  if (stage != Stage::wire) op.bytes = (stage == Stage::whole ? 4 : 2) * op.traffic.copied_bytes;  // read and written
  return op;
}

}  // namespace moeline

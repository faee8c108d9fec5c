// Normal all-to-all between nodes, as DeepEP does it: a token goes once to each destination node over RDMA, to the
// GPU of the same index there, and from there over NVLink to the ranks that hold its experts; results come back the
// same way. Record sizes: DeepEP's get_num_bytes_per_rdma_token (payload, 8 bytes of metadata, scales, top-k
// indices and weights, rounded up to 16).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe/kernels.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

using namespace kernels;

constexpr double kMetadata = 8;
constexpr double kTopKEntry = 4;  // one index or one weight

double record_bytes(double payload) { return std::ceil((payload + kMetadata) / 16) * 16; }

double fp8_record(const LayerWork& work, double top_k_entries) {
  const double columns = work.model.hidden_size;
  return record_bytes(columns * kFp8 + columns / kScaleBlock * kFp32 +
                      top_k_entries * kTopKEntry * work.model.num_experts_per_tok);
}

double bf16_record(const LayerWork& work, double top_k_entries) {
  return record_bytes(work.model.hidden_size * kBf16 + top_k_entries * kTopKEntry * work.model.num_experts_per_tok);
}

// Destinations are uniform over nodes and ranks, so the own node's share of the copies is one in `nodes`.
Traffic traffic_of(const LayerWork& work, double record) {
  const double node_size = std::min(work.gpus_per_node, work.ep);
  const double nodes = work.ep / node_size;
  const double rdma_copies = nodes > 1 ? work.tokens() * work.spread.nodes_per_token : 0;
  const double nvlink_copies = work.tokens() * work.spread.ranks_per_token;
  Traffic traffic;
  traffic.ranks = work.ep;
  traffic.rdma_bytes = rdma_copies * record;
  traffic.wire_bytes = traffic.rdma_bytes * (1 - 1 / nodes);
  traffic.nvlink_bytes = nvlink_copies * (1 - 1 / node_size) * record;
  traffic.copied_bytes = (rdma_copies + nvlink_copies) * record;
  return traffic;
}

std::string deep_ep(const LayerWork& work, const char* kernel) {
  return fmt::format("deep_ep::{}::{}", work.ep > work.gpus_per_node ? "internode" : "intranode", kernel);
}

Operator transfer(Family family, const char* kernel, const LayerWork& work, double record) {
  Operator op;
  op.name = deep_ep(work, kernel);
  op.family = family;
  op.traffic = traffic_of(work, record);
  op.bytes = 2 * op.traffic.copied_bytes;  // every copy reads and writes HBM
  return op;
}

Operator notify(const LayerWork& work, const char* kernel) {
  Operator op;
  op.name = deep_ep(work, kernel);
  op.family = Family::notify;
  return op;
}

}  // namespace

std::vector<Operator> dispatch_forward(const LayerWork& work) {
  Operator layout;
  layout.name = deep_ep(work, "get_dispatch_layout");
  layout.family = Family::routing_scan;
  layout.items = work.tokens() * work.model.n_routed_experts;
  layout.blocks = 16;
  return {layout, notify(work, "notify_dispatch"), transfer(Family::dispatch, "dispatch", work, fp8_record(work, 2))};
}

std::vector<Operator> combine_backward(const LayerWork& work) {
  return {cast("cast dY to fp8", work.tokens(), work.model.hidden_size), notify(work, "cached_notify"),
          transfer(Family::dispatch_cached, "dispatch", work, fp8_record(work, 0))};
}

std::vector<Operator> combine_forward(const LayerWork& work) {
  return {notify(work, "cached_notify"), transfer(Family::combine, "combine", work, bf16_record(work, 0))};
}

std::vector<Operator> dispatch_backward(const LayerWork& work) {
  return {notify(work, "cached_notify"), transfer(Family::combine, "combine", work, bf16_record(work, 1))};
}

}  // namespace moeline

// The all-to-all as DeepEP does it. Normal mode, between nodes: a token goes once to each destination node over RDMA,
// to the GPU of the same index there, and from there over NVLink to the ranks that hold its experts; results come back
// the same way. Record sizes: DeepEP's get_num_bytes_per_rdma_token (payload, 8 bytes of metadata, scales, top-k
// indices and weights, rounded up to 16). Low-latency mode: one message per token and expert, of the token's FP8 or
// BF16 values, FP8's scales, and a 16-byte header on the way out, as DeepEP's own benchmark counts them. TensorRT-LLM's
// over NVLink: a token goes once to each rank that holds its experts, as its numbers and their scales.
#include "moe/all_to_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

constexpr double kMetadata = 8;
constexpr double kEqual = 1 + 1e-9;  // of a ratio, but for rounding
constexpr double kTopKEntry = 4;     // one index or one weight

double payload_bytes(const AllToAllWork& work, Precision precision) {
  return work.hidden * activation_bytes(precision);
}

double record_bytes(const AllToAllWork& work, double payload, double top_k_entries) {
  return std::ceil((payload + top_k_entries * kTopKEntry * work.top_k + kMetadata) / 16) * 16;
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
std::string measured_as(const std::string& transfer, const AllToAllWork& work) {
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
  traffic.unequal = std::max(work.spread.busiest_rank, work.spread.busiest_node) > kEqual;
  traffic.rdma_bytes = rdma_copies * record;
  traffic.wire_bytes = traffic.rdma_bytes * (1 - 1 / nodes);
  traffic.nvlink_bytes = nvlink_copies * (1 - 1 / node_size) * record;
  traffic.copied_bytes = (rdma_copies + nvlink_copies) * record;
  traffic.record_bytes = record;
  traffic.payload_bytes = payload;
  return traffic;
}

std::string deep_ep(const AllToAllWork& work, const char* kernel) {
  return fmt::format("deep_ep::{}::{}", in_one_node(work) ? "intranode" : "internode", kernel);
}

Operator transfer(Family family, const char* kernel, const AllToAllWork& work, Precision precision,
                  double top_k_entries) {
  const double payload = payload_bytes(work, precision);
  Operator op;
  op.name = deep_ep(work, kernel);
  op.family = family;
  op.traffic = traffic_of(work, payload, record_bytes(work, payload, top_k_entries));
  op.bytes = 2 * op.traffic.copied_bytes;  // every copy reads and writes HBM
  op.measured_as = measured_as(kernel, work);
  return op;
}

Operator notify(const AllToAllWork& work, const char* kernel) {
  Operator op;
  op.name = deep_ep(work, kernel);
  op.family = Family::notify;
  op.traffic.ranks = work.ep;
  return op;
}

// Messages go to ranks uniformly: own node and own rank have their share. Where they do not, the busiest rank's link is
// the last to be done.
Operator low_latency(Family family, const char* kernel, Stage stage, const AllToAllWork& work, double message) {
  const double node_size = std::min(work.gpus_per_node, work.ep);
  Operator op;
  op.name = fmt::format("deep_ep::internode_ll::{}", kernel);
  op.family = family;
  op.measured_as = measured_as(name_of(family), work);
  op.traffic = sizes_of(work);
  op.traffic.stage = stage;
  op.traffic.copied_bytes = work.tokens * work.top_k * message;
  op.traffic.unequal = work.spread.busiest_rank_rows > kEqual;
  const double busiest = op.traffic.copied_bytes * work.spread.busiest_rank_rows;
  op.traffic.wire_bytes = busiest * (1 - node_size / work.ep);
  op.traffic.nvlink_bytes = busiest * (node_size - 1) / work.ep;
  op.traffic.record_bytes = message;
  op.traffic.payload_bytes = message;  // as DeepEP's benchmark counts
  if (stage != Stage::wire) op.bytes = (stage == Stage::whole ? 4 : 2) * op.traffic.copied_bytes;  // read and written
  return op;
}

// One copy of a token for each of its ranks, which reads and writes HBM.
Operator nvlink_transfer(Family family, const std::string& kernel, const AllToAllWork& work, Precision precision) {
  Operator op;
  op.name = kernel;
  op.family = family;
  const double payload = payload_bytes(work, precision == Precision::fp8 ? Precision::fp8_tensor : precision);
  op.traffic = traffic_of(work, payload, payload);
  op.bytes = 2 * op.traffic.copied_bytes;
  op.measured_as = name_of(family);
  return op;
}

}  // namespace

std::vector<Operator> normal_dispatch(const AllToAllWork& work) {
  Operator layout = routing_scan(deep_ep(work, "get_dispatch_layout"), work.tokens * work.experts);
  layout.blocks = 16;
  Operator tokens = transfer(Family::dispatch, "dispatch", work, work.dispatch, 2);
  tokens.reads_counts = true;
  return {in(kDispatchInput, layout), in(kDispatchBarrier, notify(work, "notify_dispatch")),
          in(kDispatchTransfer, tokens)};
}

std::vector<Operator> normal_combine(const AllToAllWork& work) {
  return {in(kCombineBarrier, notify(work, "cached_notify")),
          in(kCombineTransfer, transfer(Family::combine, "combine", work, Precision::bf16, 0))};
}

std::vector<Operator> cached_dispatch(const AllToAllWork& work, Precision numbers) {
  return {in(kCombineBarrier, notify(work, "cached_notify")),
          in(kCombineTransfer, transfer(Family::dispatch_cached, "dispatch", work, numbers, 0))};
}

std::vector<Operator> combine_of_gradients(const AllToAllWork& work) {
  return {in(kDispatchBarrier, notify(work, "cached_notify")),
          in(kDispatchTransfer, transfer(Family::combine, "combine", work, Precision::bf16, 1))};
}

Operator low_latency_dispatch(const AllToAllWork& work, Stage stage) {
  constexpr double kHeader = 16;
  const double message = payload_bytes(work, work.dispatch) + kHeader;
  return in(kDispatchTransfer, low_latency(Family::low_latency_dispatch, "dispatch", stage, work, message));
}

Operator low_latency_combine(const AllToAllWork& work, Stage stage) {
  const double message = payload_bytes(work, Precision::bf16);
  return in(kCombineTransfer, low_latency(Family::low_latency_combine, "combine", stage, work, message));
}

std::vector<Operator> nvlink_dispatch(const AllToAllWork& work) {
  Operator prepare;
  prepare.name = "moe_comm::prepare";
  prepare.family = Family::nvlink_prepare;
  prepare.traffic = sizes_of(work);
  prepare.measured_as = name_of(prepare.family);
  return {in(kDispatchInput, prepare),
          in(kDispatchTransfer, nvlink_transfer(Family::nvlink_dispatch, "moe_comm::dispatch", work, work.dispatch))};
}

// Fewer bits are packed and unpacked on the way, by kernels that were measured apart.
std::vector<Operator> nvlink_combine(const AllToAllWork& work) {
  Operator op = nvlink_transfer(Family::nvlink_combine, "moe_comm::combine", work, work.combine);
  if (work.combine != Precision::bf16) op.measured_as += "_low_precision";
  return {in(kCombineTransfer, op)};
}

namespace {

constexpr const char* kHybridEp = "hybrid_ep";

Operator by_hybrid_ep(Family family, const char* kernel, const AllToAllWork& work, Precision precision) {
  Operator op;
  op.name = fmt::format("{}::{}", kHybridEp, kernel);
  op.family = family;
  const double payload = payload_bytes(work, precision);
  op.traffic = traffic_of(work, payload, payload);
  op.bytes = 2 * op.traffic.copied_bytes;
  op.measured_as = kHybridEp;
  return op;
}

}  // namespace

Operator hybrid_ep_dispatch(const AllToAllWork& work) {
  return in(kDispatchTransfer, by_hybrid_ep(Family::nvlink_dispatch, "dispatch", work, work.dispatch));
}

Operator hybrid_ep_combine(const AllToAllWork& work) {
  return in(kCombineTransfer, by_hybrid_ep(Family::nvlink_combine, "combine", work, work.combine));
}

bool is_hybrid_ep(const Operator& op) { return op.measured_as == kHybridEp; }

std::vector<Operator> dispatch_forward(const LayerWork& work) {
  return normal_dispatch(work.all_to_all(Precision::fp8));
}

std::vector<Operator> combine_backward(const LayerWork& work) {
  std::vector<Operator> ops = cached_dispatch(work.all_to_all(Precision::fp8), Precision::fp8);
  ops.insert(ops.begin(), in(kCombineInput, cast("cast dY to fp8", work.tokens(), work.model.hidden_size)));
  return ops;
}

std::vector<Operator> combine_forward(const LayerWork& work) { return normal_combine(work.all_to_all(Precision::fp8)); }

std::vector<Operator> dispatch_backward(const LayerWork& work) {
  return combine_of_gradients(work.all_to_all(Precision::fp8));
}

}  // namespace moeline

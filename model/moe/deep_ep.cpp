// DeepEP's all-to-all. Normal mode, between nodes: a token goes once to each destination node over RDMA, to the GPU of
// the same index there, and from there over NVLink to the ranks that hold its experts; results come back the same way.
// Record sizes: DeepEP's get_num_bytes_per_rdma_token (payload, 8 bytes of metadata, scales, top-k indices and weights,
// rounded up to 16). Low-latency mode: one message per token and expert, of the token's FP8 or BF16 values, FP8's
// scales, and a 16-byte header on the way out, as DeepEP's own benchmark counts them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "moe/all_to_all_traffic.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

constexpr double kMetadata = 8;
constexpr double kTopKEntry = 4;  // one index or one weight

double record_bytes(const AllToAllWork& work, double payload, double top_k_entries) {
  return std::ceil((payload + top_k_entries * kTopKEntry * work.top_k + kMetadata) / 16) * 16;
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
  op.measured_as = measured_in_node(kernel, work);
  return op;
}

Operator notify(const AllToAllWork& work, const char* kernel) {
  Operator op;
  op.name = deep_ep(work, kernel);
  op.family = Family::notify;
  op.traffic.ranks = work.ep;
  return op;
}

Operator low_latency(Family family, const char* kernel, Stage stage, const AllToAllWork& work, double message) {
  Operator op = messages(family, stage, work, message);
  op.name = fmt::format("deep_ep::internode_ll::{}", kernel);
  op.measured_as = measured_in_node(name_of(family), work);
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

std::vector<Operator> cached_dispatch(const AllToAllWork& work) {
  return {in(kCombineBarrier, notify(work, "cached_notify")),
          in(kCombineTransfer, transfer(Family::dispatch_cached, "dispatch", work, work.dispatch, 0))};
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

}  // namespace moeline

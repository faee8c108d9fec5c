// DeepEP's second version (deepseek-ai/DeepEP at dd758ca: csrc/elastic/buffer.hpp, deep_ep/include/deep_ep/impls): what
// its kernels move. Out, by the hybrid way: warps copy a token into the send buffer, and for the own node straight to
// the forwarding buffer; forwarding warps read what came and write it to each rank of the node that has its experts. By
// the direct way, or inside a node, a token is read once and written to each of its ranks over NVLink, or sent to them
// from the send buffer. Back the same way: rows to the node's forwarder, which sums those of a token, and from there
// home. Then an epilogue on all SMs copies tokens out of the buffer, or sums up what came for each.
#include <algorithm>

#include "moe/all_to_all_traffic.hpp"
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

constexpr const char* kDeepEpV2 = "deepep_v2";
constexpr double kElasticMetadata = 4 + 4;  // token's index and slot
constexpr double kChoiceEntry = 4 + 4;      // an expert's index and weight
constexpr double kWeightEntry = 4;

// Of one token: copies that go out, and rows that SMs read and write for it.
struct Copies {
  double to_nodes = 0;                       ///< over RDMA, the own node included
  double to_ranks = 0;                       ///< over NVLink, the own rank included
  double read = 0, summed = 0, written = 0;  ///< summed: read, and added to others
};

bool goes_by_nodes(const AllToAllWork& work) { return !in_one_node(work) && work.elastic.topology == Topology::hybrid; }

double nodes_of(const AllToAllWork& work) { return std::max(1.0, 1.0 * work.ep / work.gpus_per_node); }

double ranks_per_token(const AllToAllWork& work) { return work.spread.ranks_per_token * work.spread.busiest_rank; }
double nodes_per_token(const AllToAllWork& work) { return work.spread.nodes_per_token * work.spread.busiest_node; }

Copies copies_out(const AllToAllWork& work) {
  const double ranks = ranks_per_token(work), nodes = nodes_of(work);
  if (goes_by_nodes(work)) {
    const double reached = nodes_per_token(work);
    return {reached, ranks, 1 + reached, 0, 1 + reached / nodes + ranks};
  }
  const double near = ranks / nodes;  // on the own node
  return {nodes > 1 ? ranks : 0, near, 1, 0, (nodes > 1 ? 1 : 0) + near};
}

// Experts' rows of a token are summed where they lie, and its ranks' sums on the node's forwarder.
Copies copies_back(const AllToAllWork& work) {
  const double ranks = ranks_per_token(work);
  const bool by_nodes = goes_by_nodes(work);
  Copies copies = copies_out(work);
  copies.read = work.expanded() ? 0 : ranks;
  copies.summed = (work.expanded() && work.tokens > 0 ? work.rows / work.tokens : 0) + (by_nodes ? ranks : 0);
  copies.written = ranks + (by_nodes ? nodes_per_token(work) : 0);
  return copies;
}

Operator transfer(Family family, const char* kernel, const AllToAllWork& work, const Copies& copies, double record) {
  const double nodes = nodes_of(work), node_size = work.ep / nodes;
  Operator op;
  op.name = std::string("deep_ep::elastic::") + (goes_by_nodes(work) ? "hybrid_" : "") + kernel;
  op.family = family;
  op.measured_as = kDeepEpV2;
  Traffic& traffic = op.traffic = sizes_of(work);
  traffic.unequal = std::max(work.spread.busiest_rank, work.spread.busiest_node) > kMostEqual;
  const double bytes = work.tokens * record;  // of a copy of each token
  traffic.rdma_bytes = copies.to_nodes * bytes;
  traffic.wire_bytes = traffic.rdma_bytes * (1 - 1 / nodes);
  traffic.nvlink_bytes = copies.to_ranks * bytes * (1 - 1 / node_size);
  traffic.read_bytes = copies.read * bytes;
  traffic.summed_bytes = copies.summed * bytes;
  traffic.copied_bytes = copies.written * bytes;
  traffic.record_bytes = traffic.payload_bytes = record;
  op.bytes = traffic.read_bytes + traffic.summed_bytes + traffic.copied_bytes +
             2 * traffic.wire_bytes;  // NICs read and write HBM, too
  return op;
}

double sent_record(const AllToAllWork& work) {
  return payload_bytes(work, work.dispatch) + kElasticMetadata + work.top_k * kChoiceEntry;
}

double result_record(const AllToAllWork& work) {
  return payload_bytes(work, Precision::bf16) + work.top_k * kWeightEntry;
}

// On all SMs: so many records are read, and so many written.
Operator epilogue(const char* kernel, double read, double written, double record) {
  Operator op = memory(Family::streaming, std::string("deep_ep::elastic::") + kernel, (read + written) * record);
  op.measured_as = kDeepEpV2;
  op.traffic.read_bytes = read * record;
  op.traffic.copied_bytes = written * record;
  return op;
}

// Tokens out of the buffer, each to its row, or to as many as it has experts here.
Operator copy_epilogue(const AllToAllWork& work) {
  const double received = work.tokens * ranks_per_token(work);
  const double written = work.expanded() ? std::max(received, work.rows) : received;
  Operator op = epilogue("dispatch_copy_epilogue", received, written, sent_record(work));
  op.reads_counts = work.elastic.cpu_sync;
  return op;
}

Operator reduce_epilogue(const AllToAllWork& work) {
  const double partial_sums = goes_by_nodes(work) ? nodes_per_token(work) : ranks_per_token(work);
  Operator op = epilogue("combine_reduce_epilogue", work.tokens * partial_sums, work.tokens,
                         payload_bytes(work, Precision::bf16));
  op.traffic.tokens = work.tokens;
  return op;
}

std::vector<Operator> out(const char* module, Family family, const AllToAllWork& work) {
  return {in(module, transfer(family, "dispatch", work, copies_out(work), sent_record(work))),
          in(module, copy_epilogue(work))};
}

std::vector<Operator> back(const char* module, const AllToAllWork& work) {
  return {in(module, transfer(Family::combine, "combine", work, copies_back(work), result_record(work))),
          in(module, reduce_epilogue(work))};
}

}  // namespace

std::vector<Operator> deep_ep_v2_dispatch(const AllToAllWork& work) {
  return out(kDispatchTransfer, Family::dispatch, work);
}

std::vector<Operator> deep_ep_v2_combine(const AllToAllWork& work) { return back(kCombineTransfer, work); }

// Where tokens go is known by then.
std::vector<Operator> deep_ep_v2_dispatch_gradients(const AllToAllWork& work) {
  AllToAllWork known = work;
  known.elastic.cpu_sync = false;
  return out(kCombineTransfer, Family::dispatch_cached, known);
}

std::vector<Operator> deep_ep_v2_combine_gradients(const AllToAllWork& work) { return back(kDispatchTransfer, work); }

bool is_deep_ep_v2(const Operator& op) { return op.measured_as == kDeepEpV2; }

bool is_deep_ep_v2_epilogue(const Operator& op) { return is_deep_ep_v2(op) && op.family == Family::streaming; }

}  // namespace moeline

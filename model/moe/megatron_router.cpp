// Router and permutation of Megatron's MoE layers, as its fused kernels run them: scores and top-k in one, the
// auxiliary loss in another, a map of rows and one copy for the permutation. How many small kernels stand between them
// is ours.
#include "moe/megatron_kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

double hidden_of(const LayerWork& work) { return work.model.hidden_size; }

// One row of scores per token, so many bytes for each of them.
Operator by_token(const char* name, const LayerWork& work, double bytes) {
  return rowwise(name, work.own_tokens(), work.own_tokens() * work.model.n_routed_experts * bytes);
}

// Where each of these tokens goes for each of these experts.
Operator map_of_rows(double tokens, double experts) {
  return in(kPermutation, memory(Family::streaming, "map of rows", tokens * experts * (kMapByte + 2 * kFp32)));
}

bool by_nccl(const LayerWork& work) { return work.mode == CommMode::all_to_all; }
// Distinct tokens behind the rows of the rank's experts.
double received_tokens(const LayerWork& work) {
  return work.mode == CommMode::none ? work.own_tokens() : work.load.received;
}

// `from` rows are read, `to` written.
Operator copy_rows(const char* name, const LayerWork& work, double from, double to) {
  return in(kPermutation, memory(Family::streaming, name, (from + to) * hidden_of(work) * kBf16));
}

// Of all ranks that share the experts.
double rows_bytes(const LayerWork& work) { return work.load.valid * hidden_of(work) * kBf16; }
Replicas sharing_ranks(const LayerWork& work) { return consecutive(work.moe_tp, work.gpus_per_node); }
bool come_by_rank(const LayerWork& work) { return (by_nccl(work) || work.moe_tp > 1) && work.local_experts() > 1; }

}  // namespace

void route_forward(Kernels& list, const LayerWork& work) {
  const double experts = work.model.n_routed_experts;
  list.add(kRouterGate, linear_gemm(Precision::bf16, "router gate fprop", work.own_tokens(), experts, hidden_of(work)));
  list.add(kRouterChoice, {by_token("scores and top-k", work, kBf16 + kFp32 + kMapByte), small("tokens per expert"),
                           by_token("scores for the auxiliary loss", work, kBf16 + kFp32), small("auxiliary loss")});
}

void route_backward(Kernels& list, const LayerWork& work) {
  const double own = work.own_tokens(), experts = work.model.n_routed_experts;
  list.add(kRouterChoice, {small("auxiliary loss backward"), by_token("scores backward", work, 3 * kFp32),
                           by_token("top-k backward", work, 3 * kFp32 + kMapByte),
                           memory(Family::streaming, "add", own * experts * 3 * kFp32)});
  list.add(kRouterGate, {linear_gemm(Precision::bf16, "router gate dgrad", own, hidden_of(work), experts),
                         linear_gemm(Precision::bf16, "router gate wgrad", experts, hidden_of(work), own)});
  // What the norm's gradient is the sum of: the router's, dispatch's, the shared experts'.
  list.add(kRouterGate, elementwise("add the router's gradient", own * hidden_of(work), 3));
  if (work.model.n_shared_experts > 0) list.add(kNorms, elementwise("add", own * hidden_of(work), 3));
}

// NCCL sends a copy of a token for each of its experts.
void permute_to_send(Kernels& list, const LayerWork& work) {
  if (!by_nccl(work)) return;
  list.ops().push_back(map_of_rows(work.own_tokens(), work.model.n_routed_experts));
  list.ops().push_back(permuted_tokens(work));
}

Operator permuted_tokens(const LayerWork& work) {
  return copy_rows("permute tokens", work, work.own_tokens(), routed_pairs(work));
}

// Tokens that came once are copied to their rows; what came from each rank lies together, and each expert's shall.
void sort_received(Kernels& list, const LayerWork& work, bool knows_map) {
  if (!by_nccl(work)) {
    const double received = received_tokens(work);
    if (!knows_map) list.ops().push_back(map_of_rows(received, work.local_experts()));
    list.ops().push_back(copy_rows("permute tokens", work, received, work.load.valid / work.moe_tp));
  }
  if (work.moe_tp > 1) list.add(kExpertSum, all_gather(rows_bytes(work), sharing_ranks(work)));
  if (come_by_rank(work))
    list.ops().push_back(copy_rows("sort rows by expert", work, work.load.valid, work.load.valid));
}

void sort_to_return(Kernels& list, const LayerWork& work) {
  if (come_by_rank(work)) list.ops().push_back(copy_rows("sort rows by rank", work, work.load.valid, work.load.valid));
  if (work.moe_tp > 1) list.add(kExpertSum, reduce_scatter(rows_bytes(work), sharing_ranks(work)));
  if (by_nccl(work)) return;
  list.ops().push_back(copy_rows("unpermute rows", work, work.load.valid / work.moe_tp, received_tokens(work)));
}

std::vector<Operator> reduce_returned(const LayerWork& work) {
  if (!by_nccl(work)) return {};
  return {copy_rows("unpermute tokens", work, routed_pairs(work), work.own_tokens())};
}

}  // namespace moeline::megatron

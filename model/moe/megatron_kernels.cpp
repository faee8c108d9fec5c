#include "moe/megatron_kernels.hpp"

#include <algorithm>

#include "architecture/matrices.hpp"
#include "moe/dispatcher.hpp"
#include "moe/megatron.hpp"
#include "moe/module_names.hpp"

namespace moeline::megatron {
namespace {

constexpr int kStreams = 4;  // of TransformerEngine's grouped linear layers (get_num_compute_streams)

}  // namespace

Operator Kernels::of_expert(std::string name, double m, double n, double k) const {
  Operator op = kernels::linear_gemm(format_, std::move(name), m, n, k);
  op.family = gemm_family(GemmLayout::contiguous, format_);
  op.streams = std::min(kStreams, static_cast<int>(work_.local_experts()));
  return op;
}

void Kernels::each_expert(const char* module, const std::string& name, const LinearShape& shape) {
  const int experts = static_cast<int>(work_.local_experts());
  for (int i = 0; i < experts; ++i) add(module, of_expert(name, shape.rows / experts, shape.n, shape.k));
}

void Kernels::experts_weight_gradient(const char* module, const std::string& name, const LinearShape& shape) {
  const int experts = static_cast<int>(work_.local_experts());
  for (int i = 0; i < experts; ++i) {
    add(module, of_expert(name + " wgrad", shape.n, shape.k, shape.rows / experts));
    as_weight_gradient(ops().back());
  }
}

AttentionTensors::AttentionTensors(const LayerWork& w)
    : work(w),
      a(attention_of_rank(w.content.attention, w.tp)),
      t(w.tokens()),
      own(w.own_tokens()),
      hidden(w.model.hidden_size),
      query(1.0 * a.heads * a.qk_dim),
      key(1.0 * a.kv_heads * a.qk_dim),
      value(1.0 * a.kv_heads * a.v_dim),
      out(1.0 * a.heads * a.v_dim) {}

Operator residual_add(const LayerWork& work) {
  const double numbers = work.own_tokens() * work.model.hidden_size;
  return kernels::in(module_names::kNorms, kernels::elementwise("bias, dropout and residual add", numbers, 3));
}

Operator layer_norm(const LayerWork& work) {
  return kernels::in(module_names::kNorms, kernels::norm("RMSNorm", work.own_tokens(), work.model.hidden_size, 2));
}

double routed_pairs(const LayerWork& work) { return work.own_tokens() * work.model.num_experts_per_tok; }

}  // namespace moeline::megatron

// How tokens reach experts in training by Megatron's token dispatchers: by a library's kernels, or NCCL's all-to-all.
//
// Backward, what went out comes back as gradients: the backward of combine sends as dispatch does, with the layout that
// the forward pass knew, and the other way round.

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

void append(std::vector<Operator> more, std::vector<Operator>& ops) {
  ops.insert(ops.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Replicas expert_ranks(const LayerWork& work) { return spaced(work.ep, work.moe_tp, work.gpus_per_node); }

Operator exchange_rows(const LayerWork& work, const char* module) {
  return in(module, all_to_all(routed_pairs(work) * work.model.hidden_size * kBf16, expert_ranks(work)));
}

// Beside rows go the router's probabilities, FP32.
Operator exchange_probabilities(const LayerWork& work, const char* module) {
  return in(module, all_to_all(routed_pairs(work) * kFp32, expert_ranks(work)));
}

AllToAllWork transfers(const LayerWork& work) { return work.all_to_all(Precision::bf16); }

// Every rank learns where the others' tokens go, before HybridEP's first transfer of a layer: a byte for each token and
// expert. Counts stay on the GPU.
std::vector<Operator> exchange_choices(const LayerWork& work) {
  const double choices = work.tokens() * work.model.n_routed_experts;  // of a rank
  return {in(kDispatchInput, all_gather(choices * work.ep, expert_ranks(work))),
          in(kDispatchInput, routing_scan("hybrid_ep::metadata_preprocess", choices))};
}

}  // namespace

// Shared experts' results, and the residual.
std::vector<Operator> add_results(const LayerWork& work) {
  const double numbers = work.own_tokens() * work.model.hidden_size;
  std::vector<Operator> ops;
  if (work.model.n_shared_experts > 0) ops.push_back(in(kNorms, elementwise("add shared experts", numbers, 3)));
  ops.push_back(residual_add(work));
  return ops;
}

std::vector<Operator> dispatch_forward(const LayerWork& work) {
  const Dispatcher& by = dispatcher_of(work.mode);
  if (by.dispatch != nullptr) {
    std::vector<Operator> ops = by.gathers_choices ? exchange_choices(work) : std::vector<Operator>{};
    append(by.dispatch(transfers(work)), ops);
    return ops;
  }
  Operator rows = exchange_rows(work, kDispatchTransfer);
  rows.reads_counts = true;
  // Each rank tells the others how many rows they get.
  const Operator counts = all_gather(work.model.n_routed_experts * work.ep * kFp32, expert_ranks(work));
  return {in(kDispatchInput, counts), rows, exchange_probabilities(work, kDispatchTransfer)};
}

std::vector<Operator> combine_backward(const LayerWork& work) {
  if (const TransferKernels kernels = dispatcher_of(work.mode).dispatch_gradients) return kernels(transfers(work));
  return {permuted_tokens(work), exchange_rows(work, kCombineTransfer)};
}

std::vector<Operator> combine_forward(const LayerWork& work) {
  const TransferKernels kernels = dispatcher_of(work.mode).combine;
  std::vector<Operator> ops =
      kernels != nullptr ? kernels(transfers(work)) : std::vector{exchange_rows(work, kCombineTransfer)};
  append(reduce_returned(work), ops);
  append(add_results(work), ops);
  return ops;
}

std::vector<Operator> dispatch_backward(const LayerWork& work) {
  if (const TransferKernels kernels = dispatcher_of(work.mode).combine_gradients) return kernels(transfers(work));
  std::vector<Operator> ops = {exchange_rows(work, kDispatchTransfer), exchange_probabilities(work, kDispatchTransfer)};
  append(reduce_returned(work), ops);
  return ops;
}

}  // namespace moeline::megatron

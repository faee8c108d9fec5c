#include "moe/megatron.hpp"
#include "moe/megatron_kernels.hpp"
#include "moe/module_names.hpp"

// Router and permutation of Megatron's MoE layers, as its fused kernels run them: scores and top-k in one, the
// auxiliary loss in another, a map of rows and one copy for the permutation. How many small kernels stand between them
// is ours.

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

// Feed-forward networks of Megatron's layers: dense, shared and routed.

namespace moeline::megatron {
namespace {

using namespace kernels;
using namespace module_names;

struct FfnNames {
  const char *gate_up, *activation, *down, *sum;
};
constexpr FfnNames kDense = {kDenseGateUp, kDenseActivation, kDenseDown, kDenseSum};
constexpr FfnNames kShared = {kSharedGateUp, kSharedActivation, kSharedDown, kSharedDown};

double gates(const LayerWork& work) { return work.model.gated_ffn ? 2 : 1; }

// SwiGLU or another activation: `in` numbers to `out`.
Operator activation(const LayerWork& work, double rows, double width) {
  return memory(Family::swiglu, work.model.gated_ffn ? "SwiGLU" : "activation",
                rows * width * (gates(work) + 1) * kBf16);
}
Operator activation_backward(const LayerWork& work, double rows, double width) {
  return memory(Family::swiglu, work.model.gated_ffn ? "SwiGLU backward" : "activation backward",
                rows * width * (2 * gates(work) + 1) * kBf16);
}

// One that tensor parallel ranks share: `width` is the rank's part.
struct Ffn {
  const LayerWork& work;
  double width;
  Precision stored;
  FfnNames names;

  [[nodiscard]] LinearShape gate_up() const {
    return {work.tokens(), gates(work) * width, 1.0 * work.model.hidden_size};
  }
  [[nodiscard]] LinearShape down() const { return {work.tokens(), 1.0 * work.model.hidden_size, width}; }
};

Ffn dense_ffn(const LayerWork& work) {
  return {work, 1.0 * work.content.dense_width / work.tp, work.content.formats.dense, kDense};
}
Ffn shared_ffn(const LayerWork& work) {
  return {work, work.model.shared_width() / work.tp, work.content.formats.shared, kShared};
}

std::vector<Operator> forward(const Ffn& ffn) {
  Kernels list(ffn.work, ffn.stored);
  list.gather(ffn.names.sum, ffn.work.model.hidden_size);
  list.forward(ffn.names.gate_up, "gate_up", ffn.gate_up());
  list.add(ffn.names.activation, activation(ffn.work, ffn.work.tokens(), ffn.width));
  list.forward(ffn.names.down, "down", ffn.down());
  list.scatter(ffn.names.sum, ffn.work.model.hidden_size);
  return list.ops();
}

std::vector<Operator> backward_input(const Ffn& ffn) {
  const double hidden = ffn.work.model.hidden_size;
  Kernels list(ffn.work, ffn.stored);
  list.gather(ffn.names.sum, hidden);
  list.input_gradient(ffn.names.down, "down", ffn.down());
  list.add(ffn.names.activation, activation_backward(ffn.work, ffn.work.tokens(), ffn.width));
  list.gather_beside(ffn.names.sum, hidden);
  list.input_gradient(ffn.names.gate_up, "gate_up", ffn.gate_up());
  list.scatter(ffn.names.sum, hidden);
  return list.ops();
}

std::vector<Operator> backward_weight(const Ffn& ffn) {
  Kernels list(ffn.work, ffn.stored);
  list.weight_gradient(ffn.names.down, "down", ffn.down());
  list.weight_gradient(ffn.names.gate_up, "gate_up", ffn.gate_up());
  return list.ops();
}

// Qwen's shared expert has a gate of one number per token.
Operator weigh_shared(const LayerWork& work, const char* name, double tensors) {
  return in(kSharedDown, elementwise(name, work.own_tokens() * work.model.hidden_size, tensors));
}

std::vector<Operator> shared_forward(const LayerWork& work) {
  std::vector<Operator> ops = forward(shared_ffn(work));
  if (work.model.shared_gate) ops.push_back(weigh_shared(work, "weigh by the shared expert's gate", 3));
  return ops;
}

std::vector<Operator> shared_backward_input(const LayerWork& work) {
  std::vector<Operator> ops = backward_input(shared_ffn(work));
  if (work.model.shared_gate) ops.insert(ops.begin(), weigh_shared(work, "gradient of the shared expert's gate", 4));
  return ops;
}

// Routed experts of the rank.
struct Experts {
  explicit Experts(const LayerWork& w)
      : work(w),
        rows(w.load.valid),
        hidden(w.model.hidden_size),
        width(1.0 * w.model.moe_intermediate_size / w.moe_tp) {}

  [[nodiscard]] LinearShape gate_up() const { return {rows, gates(work) * width, hidden}; }
  [[nodiscard]] LinearShape down() const { return {rows, hidden, width}; }

  const LayerWork& work;
  double rows, hidden, width;
};

bool has_shared(const LayerWork& work) { return work.model.n_shared_experts > 0; }

}  // namespace

std::vector<Operator> dense_forward(const LayerWork& work) {
  std::vector<Operator> ops = forward(dense_ffn(work));
  ops.push_back(residual_add(work));
  return ops;
}

// A checkpoint repeats the whole network, whose norm is a part of its first linear layer.
std::vector<Operator> dense_backward_input(const LayerWork& work) {
  Kernels list(work, Precision::bf16);
  if (recomputes(work, &RecomputedModules::mlp)) {
    list.recompute({layer_norm(work)});
    list.recompute(forward(dense_ffn(work)));
  }
  list.append(backward_input(dense_ffn(work)));
  return list.ops();
}

std::vector<Operator> dense_backward_weight(const LayerWork& work) { return backward_weight(dense_ffn(work)); }

std::vector<Operator> experts_forward(const LayerWork& work) {
  const Experts d(work);
  Kernels list(work, work.content.formats.experts);
  if (has_shared(work)) list.append(shared_forward(work));
  sort_received(list, work, false);
  list.experts_forward(kExpertGateUp, "expert gate_up", d.gate_up());
  list.add(kExpertActivation, activation(work, d.rows, d.width));
  list.experts_forward(kExpertDown, "expert down", d.down());
  sort_to_return(list, work);
  if (work.mode == CommMode::none) list.append(add_results(work));
  return list.ops();
}

std::vector<Operator> experts_backward_input(const LayerWork& work) {
  const Experts d(work);
  Kernels list(work, work.content.formats.experts);
  if (recomputes(work, &RecomputedModules::layernorm)) {
    list.recompute({layer_norm(work)});
  }
  sort_received(list, work, true);
  if (recomputes(work, &RecomputedModules::moe_act)) {
    list.recompute({in(kExpertActivation, activation(work, d.rows, d.width))});
  }
  list.experts_input_gradient(kExpertDown, "expert down", d.down());
  list.add(kExpertActivation, {activation_backward(work, d.rows, d.width), small("gradient of probabilities")});
  list.experts_input_gradient(kExpertGateUp, "expert gate_up", d.gate_up());
  sort_to_return(list, work);
  if (has_shared(work)) list.append(shared_backward_input(work));
  return list.ops();
}

std::vector<Operator> experts_backward_weight(const LayerWork& work) {
  const Experts d(work);
  Kernels list(work, work.content.formats.experts);
  list.experts_weight_gradient(kExpertDown, "expert down", d.down());
  list.experts_weight_gradient(kExpertGateUp, "expert gate_up", d.gate_up());
  if (has_shared(work)) list.append(backward_weight(shared_ffn(work)));
  return list.ops();
}

}  // namespace moeline::megatron

// Dense feed-forward layers, shared and routed experts of prefill and decode.
#include "architecture/parameters.hpp"
#include "moe/inference.hpp"
#include "moe/inference_kernels.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// Modules of a feed-forward network.
struct FfnNames {
  const char *gate_up, *activation, *down;
};

// gate_up, SwiGLU, down on every token of this rank.
std::vector<Operator> ffn(const InferenceWork& work, double width, bool cast_input, const FfnNames& names) {
  Linear linear(work.model.weights);
  linear.project(names.gate_up, "gate_up", work.tokens(), 2 * width, work.model.hidden_size, cast_input);
  linear.swiglu(names.activation, "SwiGLU", work.tokens(), width);
  linear.project(names.down, "down", work.tokens(), work.model.hidden_size, width, false);
  return linear.ops();
}

// A contiguous layout pads each expert's rows, a masked one does not.
double rows_of(const InferenceWork& work) { return work.low_latency ? work.load.valid : work.load.rows; }

Operator grouped(const InferenceWork& work, const char* name, double n, double k) {
  const Precision weights = work.model.expert_weights;
  const GemmLayout layout = work.low_latency ? GemmLayout::masked : GemmLayout::contiguous;
  Operator op = gemm(gemm_family(layout, weights), name, rows_of(work), n, k, work.local_experts());
  const double unpacked = number_bytes(multiplied_in(weights));
  op.bytes -= (work.local_experts() - work.load.hit) * n * k * unpacked;  // weights that no token wants
  op.padding_flops = op.flops * (1 - valid_share(work.load, op.m));
  op.group_rows = work.load.group_rows;
  op.expected_rows = work.load.expected_rows;
  op.rows_deviation = work.load.rows_deviation;
  // weights of four bits are read packed
  if (weights != multiplied_in(weights)) op.bytes -= work.load.hit * n * k * (unpacked - bytes_per_weight(weights));
  return op;
}

}  // namespace

std::vector<Operator> dense_ffn(const InferenceWork& work) {
  return ffn(work, work.model.intermediate_size, true, {kDenseGateUp, kDenseActivation, kDenseDown});
}

std::vector<Operator> shared_experts(const InferenceWork& work) {
  const double width = static_cast<double>(work.model.n_shared_experts) * work.model.moe_intermediate_size;
  const bool already_cast = work.dispatch != Precision::bf16 && !work.low_latency;  // as the input of dispatch
  return ffn(work, width, !already_cast, {kSharedGateUp, kSharedActivation, kSharedDown});
}

// Rows arrive packed by expert in the low-latency mode, as they were sent, which also weighs and sums them on the way
// back. In the normal mode tokens arrive once, are copied to one row per expert in the type of the GEMM, and summed
// again.
std::vector<Operator> routed_experts(const InferenceWork& work) {
  const double hidden = work.model.hidden_size;
  const double width = work.model.moe_intermediate_size;
  const double rows = rows_of(work);
  const double received = work.load.received;
  Linear linear(work.model.expert_weights);
  if (!work.low_latency) {
    linear.add(kPermutation, small("rows of each expert"));
    linear.add(kPermutation, memory(Family::streaming, "expand tokens to rows",
                                    received * (hidden * activation_bytes(work.dispatch)) +
                                        rows * (hidden * activation_bytes(linear.precision()))));
    if (linear.casts()) linear.add(kExpertGateUp, transpose_scales(rows, hidden));
  } else if (work.dispatch != linear.precision()) {
    linear.add(kExpertGateUp, cast("cast received rows to the experts' type", rows, hidden));
  }
  linear.add(kExpertGateUp, grouped(work, "expert gate_up", 2 * width, hidden));
  linear.swiglu(kExpertActivation, "SwiGLU", rows, width);
  linear.add(kExpertDown, grouped(work, "expert down", hidden, width));
  if (!work.low_latency) {
    linear.add(kPermutation,
               memory(Family::streaming, "weigh and reduce rows to tokens", (received + rows) * hidden * kBf16));
  }
  return linear.ops();
}

}  // namespace moeline

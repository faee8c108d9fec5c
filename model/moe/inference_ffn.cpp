// Dense feed-forward layers, shared and routed experts of prefill and decode.
#include "architecture/parameters.hpp"
#include "moe/inference.hpp"
#include "moe/inference_kernels.hpp"

namespace moeline {
namespace {

using namespace kernels;

// gate_up, SwiGLU, down on every token of this rank.
std::vector<Operator> ffn(const InferenceWork& work, double width, bool cast_input) {
  Linear linear(work.model.weights);
  linear.project("gate_up", work.tokens(), 2 * width, work.model.hidden_size, cast_input);
  linear.swiglu("SwiGLU", work.tokens(), width);
  linear.project("down", work.tokens(), work.model.hidden_size, width, false);
  return linear.ops();
}

// A contiguous layout pads each expert's rows, a masked one does not.
double rows_of(const InferenceWork& work) { return work.low_latency ? work.load.valid : work.load.rows; }

Operator grouped(const InferenceWork& work, const char* name, double n, double k) {
  const bool fp8 = work.model.expert_weights == WeightType::fp8;
  const Family layout = work.low_latency ? Family::gemm_fp8_masked : Family::gemm_fp8_grouped;
  Operator op = gemm(fp8 ? layout : Family::gemm_bf16_grouped, name, rows_of(work), n, k, work.local_experts());
  op.bytes -= (work.local_experts() - work.load.hit) * n * k * (fp8 ? kFp8 : kBf16);  // weights that no token wants
  op.group_rows = work.load.group_rows;
  op.expected_rows = work.load.expected_rows;
  // MXFP4 weights are read packed and multiplied in BF16
  if (work.model.expert_weights == WeightType::mxfp4)
    op.bytes -= work.load.hit * n * k * (kBf16 - bytes_per_weight(WeightType::mxfp4));
  return op;
}

}  // namespace

std::vector<Operator> dense_ffn(const InferenceWork& work) { return ffn(work, work.model.intermediate_size, true); }

std::vector<Operator> shared_experts(const InferenceWork& work) {
  const double width = static_cast<double>(work.model.n_shared_experts) * work.model.moe_intermediate_size;
  const bool already_cast = work.fp8_dispatch && !work.low_latency;  // as the input of dispatch
  return ffn(work, width, !already_cast);
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
  const double fp8_row = hidden * (kFp8 + kFp32 / kScaleBlock);
  if (!work.low_latency) {
    linear.add(small("rows of each expert"));
    linear.add(memory(
        Family::streaming, "expand tokens to rows",
        received * (work.fp8_dispatch ? fp8_row : hidden * kBf16) + rows * (linear.fp8() ? fp8_row : hidden * kBf16)));
    if (linear.fp8()) linear.add(transpose_scales(rows, hidden));
  } else if (work.fp8_dispatch != linear.fp8()) {
    linear.add(cast("cast received rows to the experts' type", rows, hidden));
  }
  linear.add(grouped(work, "expert gate_up", 2 * width, hidden));
  linear.swiglu("SwiGLU", rows, width);
  linear.add(grouped(work, "expert down", hidden, width));
  if (!work.low_latency) {
    linear.add(memory(Family::streaming, "weigh and reduce rows to tokens", (received + rows) * hidden * kBf16));
  }
  return linear.ops();
}

}  // namespace moeline

// Shared and routed experts. Rows: token-expert pairs of this rank's experts, padded to whole GEMM tiles.
#include "moe/kernels.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

using namespace kernels;

struct Ffn {
  explicit Ffn(const LayerWork& work)
      : t(work.tokens()),
        hidden(work.model.hidden_size),
        ffn(work.model.moe_intermediate_size),
        shared(work.model.n_shared_experts * static_cast<double>(work.model.moe_intermediate_size)),
        rows(work.load.rows),
        received(work.load.received),
        experts(work.local_experts()) {}

  double t, hidden;
  double ffn;     // of one routed expert
  double shared;  // of the shared experts together
  double rows, received, experts;
};

// FP8 rows with their scales, from one per received token to one per token and expert.
Operator expand(const char* name, const Ffn& d) {
  return memory(Family::streaming, name, (d.received + d.rows) * d.hidden * (kFp8 + kFp32 / kScaleBlock));
}

Operator reduce(const char* name, const Ffn& d) {
  return memory(Family::streaming, name, (d.received + d.rows) * d.hidden * kBf16);
}

Operator index_rows(Family family, const char* name, const Ffn& d) {
  Operator op = memory(family, name, 0);
  op.items = d.received;
  op.blocks = static_cast<int>(d.experts);
  return op;
}

// One GEMM per expert; how the rows split over the experts is unknown, so evenly.
void expert_weight_gradients(std::vector<Operator>& ops, const char* name, double m, double n, const Ffn& d) {
  for (int expert = 0; expert < static_cast<int>(d.experts); ++expert) {
    Operator op = gemm(Family::gemm_fp8_wgrad, name, m, n, d.rows / d.experts);
    op.parallel = true;
    ops.push_back(op);
  }
}

}  // namespace

std::vector<Operator> experts_forward(const LayerWork& work) {
  const Ffn d(work);
  return {
      small("transpose scales"),
      gemm(Family::gemm_fp8, "shared gate_up fprop", d.t, 2 * d.shared, d.hidden),
      index_rows(Family::count_rows, "count rows per expert", d),
      index_rows(Family::map_rows, "map tokens to rows", d),
      expand("expand tokens to rows", d),
      transpose_fp8("transpose expert gate_up weights", d.experts * 2 * d.ffn * d.hidden),
      transpose_scales(d.rows, d.hidden),
      gemm(Family::gemm_fp8_grouped, "expert gate_up fprop", d.rows, 2 * d.ffn, d.hidden, d.experts),
      small("convert weights of tokens"),
      memory(Family::swiglu, "SwiGLU, weight and cast", d.rows * d.ffn * (2 * kBf16 + kFp8)),
      transpose_fp8("transpose expert down weights", d.experts * d.hidden * d.ffn),
      transpose_scales(d.rows, d.ffn),
      gemm(Family::gemm_fp8_grouped, "expert down fprop", d.rows, d.hidden, d.ffn, d.experts),
      reduce("reduce rows to tokens", d),
      memory(Family::swiglu, "shared SwiGLU and cast", d.t * d.shared * (2 * kBf16 + kFp8)),
      small("transpose scales"),
      gemm(Family::gemm_fp8, "shared down fprop", d.t, d.hidden, d.shared),
      stored(cast("save expert gate_up output in fp8", d.rows, 2 * d.ffn)),
      stored(cast("save shared gate_up output in fp8", d.t, 2 * d.shared)),
  };
}

std::vector<Operator> experts_backward_input(const LayerWork& work) {
  const Ffn d(work);
  return {
      stored(cast("restore shared gate_up output", d.t, 2 * d.shared)),
      transpose_fp8("transpose shared down weight", d.hidden * d.shared),
      small("transpose scales"),
      gemm(Family::gemm_fp8, "shared down dgrad", d.t, d.shared, d.hidden),
      cast_transpose("dY per channel", d.t, d.hidden),
      recomputed(memory(Family::swiglu, "shared SwiGLU and per-channel cast", d.t * d.shared * (2 * kBf16 + kFp8))),
      memory(Family::swiglu, "shared SwiGLU backward", d.t * d.shared * 5 * kBf16),
      stored(cast("restore expert gate_up output", d.rows, 2 * d.ffn)),
      expand("expand dY to rows", d),
      transpose_scales(d.rows, d.hidden),
      gemm(Family::gemm_fp8_grouped, "expert down dgrad", d.rows, d.ffn, d.hidden, d.experts),
      memory(Family::swiglu, "SwiGLU forward and backward", d.rows * d.ffn * 6 * kBf16),
      memory(Family::swiglu, "gradient of token weights", d.rows * d.ffn * 2 * kBf16),
      cast_transpose("SwiGLU output per channel", d.rows, d.ffn),
      small("convert weights of tokens"),
      recomputed(norm("RMSNorm", d.t, d.hidden, 4)),
      cast("cast x to fp8", d.t, d.hidden),
      cast("cast d(gate_up) to fp8", d.rows, 2 * d.ffn),
      transpose_scales(d.rows, 2 * d.ffn),
      gemm(Family::gemm_fp8_grouped, "expert gate_up dgrad", d.rows, d.hidden, 2 * d.ffn, d.experts),
      reduce("reduce dX to tokens", d),
      cast_transpose("d(gate_up) per channel", d.rows, 2 * d.ffn),
      cast("restore shared x", d.t, d.hidden),
      transpose_fp8("transpose shared gate_up weight", 2 * d.shared * d.hidden),
      cast("cast shared d(gate_up) to fp8", d.t, 2 * d.shared),
      small("transpose scales"),
      gemm(Family::gemm_fp8, "shared gate_up dgrad", d.t, d.hidden, 2 * d.shared),
      cast_transpose("shared d(gate_up) per channel", d.t, 2 * d.shared),
      cast_transpose("x per channel", d.t, d.hidden),
  };
}

std::vector<Operator> experts_backward_weight(const LayerWork& work) {
  const Ffn d(work);
  std::vector<Operator> ops;
  ops.push_back(gemm(Family::gemm_fp8_wgrad, "shared down wgrad", d.hidden, d.shared, d.t));
  ops.push_back(memory(Family::requantize, "requantize dY per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(ops, "expert down wgrad", d.hidden, d.ffn, d);
  ops.push_back(memory(Family::requantize, "requantize x per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(ops, "expert gate_up wgrad", 2 * d.ffn, d.hidden, d);
  ops.push_back(gemm(Family::gemm_fp8_wgrad, "shared gate_up wgrad", 2 * d.shared, d.hidden, d.t));
  return ops;
}

}  // namespace moeline

// Shared and routed experts. Rows: token-expert pairs of this rank's experts, padded to whole GEMM tiles.
#include "moe/kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/training.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

struct Ffn {
  explicit Ffn(const LayerWork& work)
      : t(work.tokens()),
        hidden(work.model.hidden_size),
        ffn(work.model.moe_intermediate_size),
        shared(work.model.shared_width()),
        rows(work.load.rows),
        valid_rows(valid_share(work.load, work.load.rows)),
        received(work.load.received),
        experts(work.local_experts()) {}

  double t, hidden;
  double ffn;               // of one routed expert
  double shared;            // of the shared experts together
  double rows, valid_rows;  // and what share of them is no padding
  double received, experts;
};

// A product over the rows of experts.
Operator over_rows(const Ffn& d, Operator op) {
  op.padding_flops = op.flops * (1 - d.valid_rows);
  return op;
}

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
void expert_weight_gradients(KernelList& list, const char* module, const char* name, double m, double n, const Ffn& d) {
  for (int expert = 0; expert < static_cast<int>(d.experts); ++expert) {
    Operator op = over_rows(d, gemm(Family::gemm_fp8_wgrad, name, m, n, d.rows / d.experts));
    op.parallel = true;
    list.add(module, op);
  }
}

}  // namespace

std::vector<Operator> experts_forward(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedGateUp,
           {small("transpose scales"), gemm(Family::gemm_fp8, "shared gate_up fprop", d.t, 2 * d.shared, d.hidden)});
  list.add(kPermutation, {index_rows(Family::count_rows, "count rows per expert", d),
                          index_rows(Family::map_rows, "map tokens to rows", d), expand("expand tokens to rows", d)});
  list.add(
      kExpertGateUp,
      {transpose_weights("transpose expert gate_up weights", d.experts * 2 * d.ffn * d.hidden),
       transpose_scales(d.rows, d.hidden),
       over_rows(d, gemm(Family::gemm_fp8_grouped, "expert gate_up fprop", d.rows, 2 * d.ffn, d.hidden, d.experts))});
  list.add(kExpertActivation, {small("convert weights of tokens"),
                               memory(Family::swiglu, "SwiGLU, weight and cast", d.rows * d.ffn * (2 * kBf16 + kFp8))});
  list.add(
      kExpertDown,
      {transpose_weights("transpose expert down weights", d.experts * d.hidden * d.ffn), transpose_scales(d.rows, d.ffn),
       over_rows(d, gemm(Family::gemm_fp8_grouped, "expert down fprop", d.rows, d.hidden, d.ffn, d.experts))});
  list.add(kPermutation, reduce("reduce rows to tokens", d));
  list.add(kSharedActivation, memory(Family::swiglu, "shared SwiGLU and cast", d.t * d.shared * (2 * kBf16 + kFp8)));
  list.add(kSharedDown,
           {small("transpose scales"), gemm(Family::gemm_fp8, "shared down fprop", d.t, d.hidden, d.shared)});
  list.add(kExpertActivation, stored(cast("save expert gate_up output in fp8", d.rows, 2 * d.ffn)));
  list.add(kSharedActivation, stored(cast("save shared gate_up output in fp8", d.t, 2 * d.shared)));
  return list.ops();
}

std::vector<Operator> experts_backward_input(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedActivation, stored(cast("restore shared gate_up output", d.t, 2 * d.shared)));
  list.add(kSharedDown, {transpose_weights("transpose shared down weight", d.hidden * d.shared), small("transpose scales"),
                         gemm(Family::gemm_fp8, "shared down dgrad", d.t, d.shared, d.hidden),
                         cast_transpose("dY per channel", d.t, d.hidden)});
  list.add(
      kSharedActivation,
      {recomputed(memory(Family::swiglu, "shared SwiGLU and per-channel cast", d.t * d.shared * (2 * kBf16 + kFp8))),
       memory(Family::swiglu, "shared SwiGLU backward", d.t * d.shared * 5 * kBf16)});
  list.add(kExpertActivation, stored(cast("restore expert gate_up output", d.rows, 2 * d.ffn)));
  list.add(kPermutation, expand("expand dY to rows", d));
  list.add(kExpertDown,
           {transpose_scales(d.rows, d.hidden),
            over_rows(d, gemm(Family::gemm_fp8_grouped, "expert down dgrad", d.rows, d.ffn, d.hidden, d.experts))});
  list.add(kExpertActivation, {memory(Family::swiglu, "SwiGLU forward and backward", d.rows * d.ffn * 6 * kBf16),
                               memory(Family::swiglu, "gradient of token weights", d.rows * d.ffn * 2 * kBf16)});
  list.add(kExpertDown, cast_transpose("SwiGLU output per channel", d.rows, d.ffn));
  list.add(kExpertActivation, small("convert weights of tokens"));
  list.add(kNorms, recomputed(norm("RMSNorm", d.t, d.hidden, 4)));
  list.add(kSharedGateUp, cast("cast x to fp8", d.t, d.hidden));
  list.add(
      kExpertGateUp,
      {cast("cast d(gate_up) to fp8", d.rows, 2 * d.ffn), transpose_scales(d.rows, 2 * d.ffn),
       over_rows(d, gemm(Family::gemm_fp8_grouped, "expert gate_up dgrad", d.rows, d.hidden, 2 * d.ffn, d.experts))});
  list.add(kPermutation, reduce("reduce dX to tokens", d));
  list.add(kExpertGateUp, cast_transpose("d(gate_up) per channel", d.rows, 2 * d.ffn));
  list.add(kSharedGateUp, {cast("restore shared x", d.t, d.hidden),
                           transpose_weights("transpose shared gate_up weight", 2 * d.shared * d.hidden),
                           cast("cast shared d(gate_up) to fp8", d.t, 2 * d.shared), small("transpose scales"),
                           gemm(Family::gemm_fp8, "shared gate_up dgrad", d.t, d.hidden, 2 * d.shared),
                           cast_transpose("shared d(gate_up) per channel", d.t, 2 * d.shared),
                           cast_transpose("x per channel", d.t, d.hidden)});
  return list.ops();
}

std::vector<Operator> experts_backward_weight(const LayerWork& work) {
  const Ffn d(work);
  KernelList list;
  list.add(kSharedDown, gemm(Family::gemm_fp8_wgrad, "shared down wgrad", d.hidden, d.shared, d.t));
  list.add(kExpertDown, memory(Family::requantize, "requantize dY per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(list, kExpertDown, "expert down wgrad", d.hidden, d.ffn, d);
  list.add(kExpertGateUp, memory(Family::requantize, "requantize x per channel", d.rows * d.hidden * 2 * kFp8));
  expert_weight_gradients(list, kExpertGateUp, "expert gate_up wgrad", 2 * d.ffn, d.hidden, d);
  list.add(kSharedGateUp, gemm(Family::gemm_fp8_wgrad, "shared gate_up wgrad", 2 * d.shared, d.hidden, d.t));
  return list.ops();
}

}  // namespace moeline

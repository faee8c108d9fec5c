// Dense feed-forward layers, shared and routed experts of prefill and decode.
#include "moe/fused_experts.hpp"
#include "moe/inference.hpp"
#include "moe/inference_kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// Modules of a feed-forward network.
struct FfnNames {
  const char *gate_up, *activation, *down;
};

double gates(const Architecture& model) { return model.gated_ffn ? 2 : 1; }

const char* activation_of(const Architecture& model) { return model.gated_ffn ? "SwiGLU" : "activation"; }

// gate_up, SwiGLU, down on so many tokens. `cast_to`: the format that their input is there in, beside BF16.
std::vector<Operator> ffn(const InferenceWork& work, double tokens, double width, Precision stored, Precision cast_to,
                          const FfnNames& names) {
  const Architecture& m = work.model;
  Linear linear(work, stored);
  linear.project(names.gate_up, "gate_up", tokens, gates(m) * width, m.hidden_size, cast_to != linear.precision());
  linear.activate(names.activation, activation_of(m), tokens, gates(m) * width, width);
  linear.project(names.down, "down", tokens, work.model.hidden_size, width, false);
  return linear.ops();
}

ExpertShape expert_shape(const InferenceWork& work, const Block& block) {
  const Architecture& m = work.model;
  const Precision weights = block.content.formats.experts;
  ExpertShape shape{.tokens = work.all_tokens()};
  if (work.mode == CommMode::nvlink) shape.received = work.load.received;
  shape.hidden = m.expert_hidden_size();
  shape.width = columns_of_rank(m.moe_intermediate_size, work.moe_tp, weights);
  shape.top_k = work.top_k();
  shape.experts = work.local_experts() * work.ep;
  shape.ep = work.ep;
  shape.gate = gates(m);
  shape.weights = weights;
  shape.math = work.fused_format(weights);
  shape.rows = work.load.valid;
  shape.hit = work.load.hit;
  if (work.mode == CommMode::fused) shape.layout = ExpertLayout::mega;
  return shape;
}

// What the kernel is of the layer that a serving stack's tables have whole, so that it can be priced by them.
Operator as_part(const InferenceWork& work, const Block& block, ExpertRole role, Operator op) {
  ExpertShape shape = expert_shape(work, block);
  shape.role = role;
  shape.math = work.fused_format(shape.weights);
  shape.layout = work.masked() ? ExpertLayout::masked : ExpertLayout::contiguous;
  // Kernels of a contiguous layout go through the tokens that reached the rank.
  if (!work.masked()) shape.tokens = work.load.received;
  op.experts = shape;
  op.measured_as = measured_expert_layer(shape);
  return op;
}

// A contiguous layout pads each expert's rows, a masked one does not.
double rows_of(const InferenceWork& work) { return work.masked() ? work.load.valid : work.load.rows; }

Operator grouped(const InferenceWork& work, const Block& block, const char* name, double n, double k) {
  const Precision weights = block.content.formats.experts;
  const GemmLayout layout = work.masked() ? GemmLayout::masked : GemmLayout::contiguous;
  Operator op = gemm(gemm_family(layout, weights), name, rows_of(work), n, k, work.local_experts());
  const Precision math = work.fused_format(weights);
  if (math == Precision::nvfp4 || weights == Precision::mxfp4) op.precision = math;
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

std::vector<Operator> fused_layer(const InferenceWork& work, const Block& block) {
  ExpertShape shape = expert_shape(work, block);
  const double needed = shape.hidden * work.model.moe_intermediate_size / work.moe_tp;
  shape.width = work.expert_padding.padded_width(shape.width);
  shape.hidden = work.expert_padding.padded_hidden(shape.hidden);
  std::vector<Operator> ops = fused_experts(shape);
  for (Operator& op : ops) {
    op.rows_deviation = work.load.rows_deviation;
    op.expected_rows = work.load.expected_rows;
    if (!is_gemm(op.family)) continue;
    op.group_rows = work.load.group_rows;
    op.padding_flops += (op.flops - op.padding_flops) * (1 - needed / (shape.width * shape.hidden));
  }
  return ops;
}

// A GEMM of few rows has fewer tiles than the GPU has SMs, and leaves the others to whatever runs beside it.
void hold_tiles(std::vector<Operator>& ops) {
  constexpr double kTile = 128;
  for (Operator& op : ops) {
    if (is_gemm(op.family)) op.blocks = static_cast<int>(std::ceil(op.m / kTile) * std::ceil(op.n / kTile));
  }
}

}  // namespace

std::vector<Operator> dense_ffn(const InferenceWork& work, const Block& block) {
  const double width = static_cast<double>(block.content.dense_width) / work.tp;
  std::vector<Operator> ops = ffn(work, work.tokens(), width, block.content.formats.dense, Precision::bf16,
                                  {kDenseGateUp, kDenseActivation, kDenseDown});
  if (work.tp > 1) ops.push_back(in(kDenseSum, all_reduce_tokens(work)));
  return ops;
}

// Split like a dense layer where the sum over the ranks takes them along; else each rank has them whole, for its own
// tokens.
std::vector<Operator> shared_experts(const InferenceWork& work, const Block& block) {
  const double width = work.model.shared_width();
  const double ranks = work.mode == CommMode::all_reduce ? work.tp : 1;
  // As the input of dispatch, but where routed experts get another one.
  const bool other = dispatcher_of(work.mode).casts_on_the_way || work.model.moe_latent_size > 0;
  const Precision sent = other ? Precision::bf16 : work.dispatch;
  std::vector<Operator> ops = ffn(work, work.own_tokens(), width / ranks, block.content.formats.shared, sent,
                                  {kSharedGateUp, kSharedActivation, kSharedDown});
  if (work.model.shared_gate) {
    const double numbers = work.own_tokens() * work.model.hidden_size;
    ops.push_back(in(kSharedDown, elementwise("weigh by the shared expert's gate", numbers, 3)));
  }
  if (work.shared_beside) hold_tiles(ops);
  return ops;
}

namespace {

// Between a row for each expert and the slabs of a masked GEMM, as SGLang repacks them (its pull request 29525).
Operator repack(const char* name, const InferenceWork& work, Precision precision) {
  return memory(Family::streaming, name,
                2 * work.load.valid * work.model.expert_hidden_size() * activation_bytes(precision));
}

// Tokens that came once are copied to one row per expert, in the type of the GEMM.
void expand_tokens(Linear& linear, const InferenceWork& work, const Block& block) {
  const double hidden = work.model.expert_hidden_size(), rows = rows_of(work);
  linear.add(kPermutation, small("rows of each expert"));
  const Operator expand = memory(Family::streaming, "expand tokens to rows",
                                 work.load.received * (hidden * activation_bytes(work.dispatch)) +
                                     rows * (hidden * activation_bytes(linear.precision())));
  linear.add(kPermutation, as_part(work, block, ExpertRole::permute, expand));
  if (linear.casts()) linear.add(kExpertGateUp, transpose_scales(rows, hidden));
}

// What came becomes what the GEMMs take.
void lay_out_rows(Linear& linear, const InferenceWork& work, const Block& block) {
  if (work.arrival() == Arrival::tokens) return expand_tokens(linear, work, block);
  if (work.arrival() == Arrival::rows) {
    linear.add(kPermutation,
               work.masked() ? repack("repack rows into slabs", work, work.dispatch) : small("expert of each row"));
  }
  if (work.dispatch != linear.precision()) {
    const double hidden = work.model.expert_hidden_size();
    linear.add(kExpertGateUp, cast("cast received rows to the experts' type", rows_of(work), hidden));
  }
}

// And back to what combine takes.
void lay_out_results(Linear& linear, const InferenceWork& work, const Block& block) {
  if (work.arrival() == Arrival::tokens) {
    const double hidden = work.model.expert_hidden_size();
    const Operator reduce = memory(Family::streaming, "weigh and reduce rows to tokens",
                                   (work.load.received + rows_of(work)) * hidden * kBf16);
    linear.add(kPermutation, as_part(work, block, ExpertRole::finalise, reduce));
  } else if (work.arrival() == Arrival::rows && work.masked()) {
    linear.add(kPermutation, repack("repack slabs into rows", work, Precision::bf16));
  }
}

}  // namespace

// How rows come and go is the all-to-all's (Arrival): in slabs, as the low-latency mode sends them and weighs and sums
// them on the way back; as tokens; or as rows, whose weights the activation takes along. Where tokens come in other
// ways, a stack runs its experts as one body of kernels.
std::vector<Operator> routed_experts(const InferenceWork& work, const Block& block) {
  if (work.arrival() == Arrival::gathered) return fused_layer(work, block);
  const Architecture& m = work.model;
  const double hidden = m.expert_hidden_size();
  const double width = m.moe_intermediate_size;
  Linear linear(work, block.content.formats.experts);
  lay_out_rows(linear, work, block);
  linear.add(kExpertGateUp, as_part(work, block, ExpertRole::gate_up,
                                    grouped(work, block, "expert gate_up", gates(m) * width, hidden)));
  linear.activate(kExpertActivation, activation_of(m), rows_of(work), gates(m) * width, width);
  linear.ops().back() = as_part(work, block, ExpertRole::activation, linear.ops().back());
  linear.add(kExpertDown, as_part(work, block, ExpertRole::down, grouped(work, block, "expert down", hidden, width)));
  lay_out_results(linear, work, block);
  return linear.ops();
}

}  // namespace moeline

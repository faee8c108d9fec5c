// Attention that keeps a state in the place of keys and values: gated delta nets (arXiv 2412.06464), Kimi delta
// attention (arXiv 2510.26692), Mamba-2 (arXiv 2405.21060) and lightning attention (arXiv 2401.04658). Prompts go
// through it chunk by chunk, as matrix products; in decode each token updates it.
//
// A convolution over the last few tokens comes before the state, a norm with a gate behind it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// Numbers per token, and of a request.
struct StateSizes {
  explicit StateSizes(const LayerAttention& a)
      : values(1.0 * a.heads * a.v_dim),
        keys(1.0 * a.kv_heads * a.qk_dim),
        convolved(2 * keys + values),
        state(values * a.qk_dim) {}
  double values, keys, convolved, state;
};

// A delta rule writes what the state does not know yet, for which it is read once more.
bool is_delta(const LayerAttention& a) { return a.kind == AttentionKind::delta_net || a.kind == AttentionKind::kda; }

const char* name_of(AttentionKind kind) {
  return kind == AttentionKind::mamba       ? "mamba"
         : kind == AttentionKind::lightning ? "lightning"
         : kind == AttentionKind::kda       ? "kda"
                                            : "delta_net";
}

void convolve(Linear& linear, const AttentionWork& of) {
  if (of.attention.conv == 0) return;
  const StateSizes size(of.attention);
  const double kept = size.convolved * (of.attention.conv - 1);  // inputs of a request
  const auto add = [&](const Sequences& sequences, const char* name, const char* measured) {
    if (!sequences.any()) return;
    Operator op = memory(Family::streaming, name,
                         (2 * sequences.tokens() * size.convolved + 2 * sequences.requests * kept) * kBf16);
    op.measured_as = measured;
    linear.add(kStateConvolution, op);
  };
  add(of.work.prefill, "causal convolution", "conv_prefill");
  add(of.work.decode, "causal convolution update", "conv_decode");
}

AttentionShape shape_of(const AttentionWork& of, const Sequences& sequences) {
  AttentionShape shape = core_shape(of, sequences);
  shape.kv_len = sequences.query_len;  // a state has the same size whatever came before
  return shape;
}

Operator core(const AttentionWork& of, const Sequences& sequences, Family family, const char* name) {
  Operator op;
  op.name = name;
  op.family = family;
  op.attention = shape_of(of, sequences);
  op.measured_as =
      fmt::format("{}_{}", name_of(of.attention.kind), family == Family::state_scan ? "prefill" : "decode");
  return op;
}

// Products of a chunk of C tokens, for each of its tokens and a head: with queries C x qk, with values C x v, and the
// state's update and reading; a delta rule solves for what each token adds: C x qk twice more, C x v once, and it reads
// the state once more. Tensors once, the state of each chunk written and read.
Operator scan(const AttentionWork& of) {
  const LayerAttention& a = of.attention;
  const Sequences& prompts = of.work.prefill;
  const StateSizes size(a);
  const bool delta = is_delta(a);
  const double chunk = std::min<double>(a.chunk, prompts.query_len);
  const double within = delta ? 3.0 * a.qk_dim + 2.0 * a.v_dim : a.qk_dim + a.v_dim;
  const double across = (delta ? 3.0 : 2.0) * a.qk_dim * a.v_dim;
  Operator op = core(of, prompts, Family::state_scan, delta ? "chunked delta rule" : "chunked scan");
  op.flops = 2 * prompts.tokens() * a.heads * (chunk * within + across);
  const double chunks = prompts.requests * std::ceil(prompts.query_len / chunk);
  op.bytes = prompts.tokens() * (size.convolved + size.values) * kBf16 + 2 * chunks * size.state * kBf16 +
             2 * prompts.requests * size.state * a.state_bytes;
  return op;
}

// Reads and writes the state of each request once for each of its tokens.
Operator update(const AttentionWork& of) {
  const LayerAttention& a = of.attention;
  const Sequences& requests = of.work.decode;
  const StateSizes size(a);
  Operator op = core(of, requests, Family::state_update, is_delta(a) ? "delta rule update" : "state update");
  op.flops = 2 * requests.tokens() * size.state * (is_delta(a) ? 3 : 2);
  op.bytes = requests.tokens() * (2 * size.state * a.state_bytes + (size.convolved + size.values) * kBf16);
  return op;
}

}  // namespace

void project_state(Linear& linear, const AttentionWork& of) {
  const LayerAttention& a = of.attention;
  const StateSizes size(a);
  const double t = of.work.tokens(), hidden = of.work.model.hidden_size;
  const double steps = a.kind == AttentionKind::mamba ? a.heads : 0;  // in the same GEMM
  const double gate = a.gate_rank == 0 ? size.values : 0;
  linear.project(kStateInput, "W_QKV and gate", t, size.convolved + gate + steps, hidden);
  if (a.kind == AttentionKind::delta_net) {
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays and steps", t, 2.0 * a.heads, hidden));
  } else if (a.kind == AttentionKind::kda) {
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays and steps, down", t,
                                        1.0 * a.qk_dim + a.heads + a.gate_rank, hidden));
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays, up", t, size.keys, a.qk_dim));
    if (a.gate_rank > 0) linear.add(kStateGates, linear_gemm(Precision::bf16, "gate, up", t, size.values, a.gate_rank));
  }
  convolve(linear, of);
}

void update_state(Linear& linear, const AttentionWork& of) {
  const StateSizes size(of.attention);
  if (of.work.prefill.any()) linear.add(kStateCore, scan(of));
  if (of.work.decode.any()) linear.add(kStateCore, update(of));
  linear.add(kStateNorm, norm("RMSNorm of the output, gated", of.work.tokens(), size.values, 3));
}

}  // namespace moeline

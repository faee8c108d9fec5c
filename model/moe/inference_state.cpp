// Attention that keeps a state in the place of keys and values: gated delta nets (arXiv 2412.06464), Kimi delta
// attention (arXiv 2510.26692), Mamba-2 (arXiv 2405.21060) and lightning attention (arXiv 2401.04658). Prompts go
// through it chunk by chunk, as matrix products; in decode each token updates it.
//
// A convolution over the last few tokens comes before the state, a norm with a gate behind it.
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/state_kernels.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

StateShape state_shape(const LayerAttention& a, const Sequences& sequences) {
  return {.kind = a.kind,
          .batch = sequences.requests,
          .query_len = sequences.query_len,
          .heads = 1.0 * a.heads,
          .key_heads = 1.0 * a.kv_heads,
          .qk_dim = 1.0 * a.qk_dim,
          .v_dim = 1.0 * a.v_dim,
          .chunk = 1.0 * a.chunk,
          .state_bytes = 1.0 * a.state_bytes};
}

void convolve(Linear& linear, const AttentionWork& of) {
  const LayerAttention& a = of.attention;
  if (a.conv == 0) return;
  for (const bool decodes : {false, true}) {
    const Sequences& sequences = decodes ? of.work.decode : of.work.prefill;
    if (!sequences.any()) continue;
    linear.add(kStateConvolution, state_convolution(state_shape(a, sequences), a.conv, decodes));
  }
}

}  // namespace

void project_state(Linear& linear, const AttentionWork& of) {
  const LayerAttention& a = of.attention;
  const StateShape size = state_shape(a, {});
  const double t = of.work.tokens(), hidden = of.work.model.hidden_size;
  const double steps = a.kind == AttentionKind::mamba ? a.heads : 0;  // in the same GEMM
  const double gate = a.gate_rank == 0 ? size.values() : 0;
  linear.project(kStateInput, "W_QKV and gate", t, size.convolved() + gate + steps, hidden);
  if (a.kind == AttentionKind::delta_net) {
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays and steps", t, 2.0 * a.heads, hidden));
  } else if (a.kind == AttentionKind::kda) {
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays and steps, down", t,
                                        1.0 * a.qk_dim + a.heads + a.gate_rank, hidden));
    linear.add(kStateGates, linear_gemm(Precision::bf16, "decays, up", t, size.keys(), a.qk_dim));
    if (a.gate_rank > 0)
      linear.add(kStateGates, linear_gemm(Precision::bf16, "gate, up", t, size.values(), a.gate_rank));
  }
  convolve(linear, of);
}

void update_state(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  if (work.prefill.any()) linear.add(kStateCore, state_scan(state_shape(of.attention, work.prefill)));
  if (work.decode.any()) linear.add(kStateCore, state_update(state_shape(of.attention, work.decode)));
  const double values = state_shape(of.attention, {}).values();
  linear.add(kStateNorm, norm("RMSNorm of the output, gated", work.tokens(), values, 3));
}

}  // namespace moeline

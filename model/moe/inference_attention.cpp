// Attention of prefill and decode: what all kinds have around their cores, and the router behind it.
#include <algorithm>

#include "moe/attention_core.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/sparse_kernels.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// `blocks`: that the keys are split into, of which this is one.
Operator prompts_core(const AttentionWork& of, int blocks) {
  AttentionShape shape = core_shape(of, of.work.prefill);
  shape.kv_len = keys_of_part(of.work, blocks);
  if (of.attention.kind == AttentionKind::mla) shape.kv_heads = shape.heads;
  return prefill_core(shape, of.attention.window);
}

// Partial results are weighed by their sums.
void attend_in_ring(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const double keys = work.prefill.requests * work.prefill.kv_len / work.cp;
  for (int block = 1; block < work.cp; ++block) linear.add(kKeyTransfer, pass_keys_on(work, of.attention, keys));
  const Operator core = prompts_core(of, work.cp);
  const double outputs = work.tokens() * of.attention.heads * core.attention.v_dim;
  for (int block = 0; block < work.cp; ++block) {
    linear.add(kCore, core);
    linear.ops().back().awaits = block;
    if (block > 0)
      linear.add(kCore, memory(Family::streaming, "merge partial attention", outputs * (kBf16 + 2 * kFp32)));
  }
}

// The expert choice: scores, groups and top-k in one kernel, or where layers are `hashed` a table of tokens; weights in
// another. trtllm-gen's experts choose themselves.
void route(Linear& linear, const InferenceWork& work, bool hashed) {
  const Architecture& m = work.model;
  const double t = work.own_tokens();
  const double scores = m.n_routed_experts + m.zero_expert_num;
  linear.add(kRouterGate, linear_gemm(Precision::bf16, "router gate", t, scores, m.hidden_size));
  if (!hashed && work.backend == MoeBackend::trtllm_gen) return;
  linear.add(kRouterChoice, hashed ? small("experts of the tokens") : routing_scan("scores and top-k", t * scores));
  linear.add(kRouterChoice, small("normalise weights"));
}

// Tokens as routed experts see them.
void project_to_latent(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  if (m.moe_latent_size == 0) return;
  linear.add(kLatentDown,
             linear_gemm(Precision::bf16, "latent down", work.own_tokens(), m.moe_latent_size, m.hidden_size));
}

// Hidden states that are mixed before and behind each part of a layer: of hyper-connections all of them are read, the
// weights that follow from them, and all written again; of attention to earlier layers those kept are read, as many as
// a layer in the middle has.
void mix_residuals(Linear& linear, const InferenceWork& work, double rows) {
  const Architecture& m = work.model;
  if (m.hc_mult > 1) {
    for (const StreamPart part : {StreamPart::pre, StreamPart::post}) {
      linear.add(kResidualMixing, mix_streams(part, rows, m.hidden_size, m.hc_mult));
    }
  }
  if (m.attn_res_block_size > 0) {
    const double kept = m.num_hidden_layers / (2.0 * m.attn_res_block_size);
    linear.add(kResidualMixing, norm("attend to earlier hidden states", rows, m.hidden_size, kept + 2));
  }
}

// What the kinds of attention have before their core, and from it on.
struct Steps {
  void (*project)(Linear&, const AttentionWork&);
  void (*attend)(Linear&, const AttentionWork&);
};

Steps steps_of(AttentionKind kind) {
  if (has_state(kind)) return {project_state, update_state};
  if (kind == AttentionKind::mla) return {project_latents, attend_latents};
  if (kind == AttentionKind::compressed) return {project_compressed, attend_compressed};
  return {project_groups, attend_groups};
}

// Of what the last projection takes.
double output_width(const AttentionWork& of) {
  if (of.attention.kind == AttentionKind::compressed) {
    return std::max(1.0, 1.0 * of.work.model.o_groups / of.work.tp) * of.work.model.o_lora_rank;
  }
  return 1.0 * of.attention.heads * of.attention.v_dim;
}

// What comes between attention and a feed-forward network, or the next layer's attention.
void sum_and_norm(Linear& linear, const InferenceWork& work, const Block& block) {
  const Architecture& m = work.model;
  const bool scatters = work.scatters_tokens() && block.kind == BlockKind::moe_layer;
  if (work.tp > 1) linear.add(kAttentionSum, scatters ? scatter_tokens(work) : all_reduce_tokens(work));
  const double rows = scatters ? work.own_tokens() : work.tokens();
  if (m.output_norms) linear.add(kNorms, norm("RMSNorm of attention's output", rows, m.hidden_size, 2));
  if (!block.content.has_ffn()) return;
  mix_residuals(linear, work, rows);
  if (scatters || !norms_in_all_reduce(work)) {
    linear.add(kNorms, norm("RMSNorm and residual add", rows, m.hidden_size, 4));
  }
}

}  // namespace

AttentionShape core_shape(const AttentionWork& of, const Sequences& sequences) {
  return {.batch = sequences.requests,
          .heads = 1.0 * of.attention.heads,
          .kv_heads = 1.0 * of.attention.kv_heads,
          .query_len = sequences.query_len,
          .kv_len = sequences.kv_len,
          .qk_dim = 1.0 * of.attention.qk_dim,
          .v_dim = 1.0 * of.attention.v_dim,
          .cache = of.work.model.kv_cache};
}

double keys_of_part(const InferenceWork& work, int blocks) {
  const Sequences& prompts = work.prefill;
  const double mean_seen = prompts.kv_len - work.cp * prompts.query_len / 2;
  return mean_seen / blocks + prompts.query_len / 2;
}

void attend_to_prompts(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const bool ring = work.cp > 1 && work.context == ContextMode::ring;
  const bool windowed = of.attention.window > 0 && of.attention.window < work.prefill.kv_len;
  if (ring && !windowed) return attend_in_ring(linear, of);
  // A window reaches back into a neighbour's keys alone, from the begin of each of a rank's two pieces.
  if (ring) {
    linear.add(kKeyTransfer, pass_keys_on(work, of.attention, 2 * work.prefill.requests * of.attention.window));
  }
  linear.add(kCore, prompts_core(of, 1));
  if (ring) linear.ops().back().awaits = 1;
}

std::vector<Operator> attention_before_core(const InferenceWork& work, const Block& block) {
  Linear linear(work, block.content.formats.attention_in);
  const AttentionWork of{work, work.attention(block)};
  if (of.attention.kind == AttentionKind::none) return {};
  if (!comes_normed(work)) {
    linear.add(kNorms, norm("RMSNorm and residual add", work.tokens(), work.model.hidden_size, 4));
  }
  mix_residuals(linear, work, work.tokens());
  steps_of(of.attention.kind).project(linear, of);
  if (!work.core_first) return linear.ops();
  Linear core(work, block.content.formats.attention_out);
  steps_of(of.attention.kind).attend(core, of);
  std::vector<Operator> ops = linear.ops();
  ops.insert(ops.end(), core.ops().begin(), core.ops().end());
  return ops;
}

std::vector<Operator> attention_from_core(const InferenceWork& work, const Block& block) {
  const AttentionWork of{work, work.attention(block)};
  const Architecture& m = work.model;
  Linear linear(work, block.content.formats.attention_out);
  if (of.attention.kind != AttentionKind::none) {
    if (!work.core_first) steps_of(of.attention.kind).attend(linear, of);
    linear.project(has_state(of.attention.kind) ? kStateOutput : kOutput, "W_O", work.tokens(), m.hidden_size,
                   output_width(of));
    sum_and_norm(linear, work, block);
  } else if (!comes_normed(work)) {
    linear.add(kNorms, norm("RMSNorm and residual add", work.tokens(), m.hidden_size, 4));
  }
  if (block.kind == BlockKind::dense_layer) return linear.ops();
  route(linear, work, block.content.hashed);
  project_to_latent(linear, work);
  // DeepEP's low-latency kernels cast as they send
  if (work.dispatch != Precision::bf16 && !work.low_latency()) {
    linear.add(kDispatchInput, cast("cast dispatch input to " + name_of(work.dispatch), work.own_tokens(),
                                    m.expert_hidden_size(), work.dispatch));
  }
  return linear.ops();
}

}  // namespace moeline

#include <algorithm>
#include <cmath>

#include "moe/attention_kernels.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {

// Grouped-query attention: over all keys, a sliding window, or the keys of a chunk.

namespace {

using namespace kernels;
using namespace module_names;

// Prompts whose tokens see those of their own chunk alone are as many prompts as they have chunks, each of the mean
// length. Of what is cached the first one sees what lies in its chunk.
void attend_in_chunks(Linear& linear, const AttentionWork& of) {
  InferenceWork work = of.work;
  const double chunk = of.attention.chunk;
  Sequences& prompts = work.prefill;
  const double keys = std::fmod(prompts.kv_len - prompts.query_len, chunk) + prompts.query_len;
  const double chunks = std::ceil(keys / chunk);
  prompts.requests *= chunks;
  prompts.query_len /= chunks;
  prompts.kv_len = keys / chunks;
  attend_to_prompts(linear, {work, of.attention});
}

// Of a chunk, a token sees half on average.
double keys_seen(const LayerAttention& attention, double kv_len) {
  if (attention.window > 0) return std::min(kv_len, 1.0 * attention.window);
  if (attention.chunk > 0 && kv_len > attention.chunk) return (attention.chunk + 1) / 2.0;
  return kv_len;
}

// Each head of keys has blocks of its own.
Operator chosen_core(const AttentionWork& of, const Sequences& sequences, double distinct) {
  AttentionShape shape = core_shape(of, sequences);
  shape.kv_len = most_keys(of.attention);
  return sparse_core(shape, distinct);
}

void attend_to_chosen(Linear& linear, const AttentionWork& of) {
  const Sequences& prompts = of.work.prefill;
  linear.add(kCore, chosen_core(of, prompts, prompts.requests * prompts.kv_len));
}

Operator decode_core(const AttentionWork& of) {
  if (chooses(of.attention, of.work.decode)) return chosen_core(of, of.work.decode, 0);
  AttentionShape shape = core_shape(of, of.work.decode);
  shape.kv_len = keys_seen(of.attention, shape.kv_len);
  return gqa_decode_core(shape);
}

// Columns of queries and of keys, in one kernel; where heads are copied out of their product, each by itself.
void norm_heads(Linear& linear, const InferenceWork& work, double query, double key) {
  const double t = work.tokens();
  const auto normed = [&](const char* name, double columns) {
    linear.add(kAttentionNorms, as_small(SmallKernel::head_norm, norm(name, t, columns, 2)));
  };
  if (!work.kernels.copies_heads) return normed("RMSNorm of q and k heads", query + key);
  linear.add(kAttentionNorms, as_small(SmallKernel::head_copy, elementwise("copy q heads", t * query, 2)));
  normed("RMSNorm of q heads", query);
  linear.add(kAttentionNorms, as_small(SmallKernel::head_copy, elementwise("copy k heads", t * key, 2)));
  normed("RMSNorm of k heads", key);
}

}  // namespace

void project_groups(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const LayerAttention& a = of.attention;
  const double t = work.tokens();
  const double query = 1.0 * a.heads * a.qk_dim, key = 1.0 * a.kv_heads * a.qk_dim, value = 1.0 * a.kv_heads * a.v_dim;
  const double index = a.selection.own ? 1.0 * (a.selection.heads + 1) * a.selection.dim : 0;  // in the same GEMM
  const double columns = query * (a.gated ? 2 : 1) + key + (a.keys_are_values ? 0 : value) + index;
  linear.project(kQkv, a.gated ? "W_QKV and gate" : "W_QKV", t, columns, work.model.hidden_size);
  if (work.model.qk_norm != QkNorm::none) norm_heads(linear, work, query, key);
  linear.add(kRotary, rotary_store(t * (2 * (query + key) + 2 * value) * kBf16));
  if (gathers_keys(work)) linear.add(kKeyTransfer, gather_keys(work, a));
}

void attend_groups(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  choose_keys(linear, of);
  if (chooses(of.attention, work.prefill)) {
    attend_to_chosen(linear, of);
  } else if (work.prefill.any()) {
    const bool chunked = of.attention.chunk > 0 && work.prefill.kv_len > of.attention.chunk;
    (chunked ? attend_in_chunks : attend_to_prompts)(linear, of);
  }
  if (work.decode.any()) linear.add(kCore, decode_core(of));
  if (of.attention.gated) {
    const double outputs = work.tokens() * of.attention.heads * of.attention.v_dim;
    linear.add(kCore, elementwise("gate the output", outputs, 3));
  }
}

// Attention that keeps a state in the place of keys and values: gated delta nets (arXiv 2412.06464), Kimi delta
// attention (arXiv 2510.26692), Mamba-2 (arXiv 2405.21060) and lightning attention (arXiv 2401.04658). Prompts go
// through it chunk by chunk, as matrix products; in decode each token updates it.
//
// A convolution over the last few tokens comes before the state, a norm with a gate behind it.

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

// Attention of prefill and decode: what all kinds have around their cores, and the router behind it.

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
// another, but where the kernel of the choice normalises them as well.
void route(Linear& linear, const InferenceWork& work, bool hashed) {
  const Architecture& m = work.model;
  const double t = work.own_tokens();
  const double scores = m.n_routed_experts + m.zero_expert_num;
  linear.add(kRouterGate, linear_gemm(Precision::bf16, "router gate", t, scores, m.hidden_size));
  if (!hashed && work.experts_choose) return;
  linear.add(kRouterChoice, hashed
                                ? small("experts of the tokens")
                                : as_small(SmallKernel::expert_choice, routing_scan("scores and top-k", t * scores)));
  if (hashed || !work.kernels.choice_normalises) linear.add(kRouterChoice, small("normalise weights"));
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
  if (work.dispatch != Precision::bf16 && !dispatcher_of(work.mode).casts_on_the_way) {
    linear.add(kDispatchInput, cast("cast dispatch input to " + name_of(work.dispatch), work.own_tokens(),
                                    m.expert_hidden_size(), work.dispatch));
  }
  return linear.ops();
}

}  // namespace moeline

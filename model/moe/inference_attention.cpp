// Attention of prefill and decode, MLA and GQA. Symbols as in the DeepSeek-V2 paper: W_DQ and W_UQ project queries down
// and up, W_DKV and W_UKV keys and values, W_O the output. In decode W_UK and W_UV are absorbed: queries and outputs
// are projected into the latent space head by head, and the cache is read as it is (section 2.1.2 there).
#include <algorithm>

#include "architecture/matrices.hpp"
#include "architecture/parameters.hpp"
#include "moe/attention_core.hpp"
#include "moe/inference.hpp"
#include "moe/inference_kernels.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// One GEMM per head, BF16.
Operator per_head(const char* name, double tokens, double heads, double n, double k) {
  return per_head_gemm(Precision::bf16, name, heads, tokens, n, k);
}

void project_mla(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  const double heads = work.heads();
  const double query = heads * (m.qk_nope_head_dim + m.qk_rope_head_dim);
  const double latent = m.kv_lora_rank + m.qk_rope_head_dim;
  const double t = work.tokens();
  if (m.q_lora_rank > 0) {
    linear.project(kDownProjections, "W_DQ and W_DKV", t, m.q_lora_rank + latent, m.hidden_size);
    linear.add(kAttentionNorms, norm("RMSNorm q", t, m.q_lora_rank, 2));
  } else {
    linear.project(kQAndDownKv, "W_Q and W_DKV", t, query + latent, m.hidden_size);
  }
  linear.add(kAttentionNorms, norm("RMSNorm kv", t, m.kv_lora_rank, 2));
  if (m.q_lora_rank > 0) linear.project(kUpQ, "W_UQ", t, query, m.q_lora_rank);
}

// Keys and values of every head, those of a cached prefix included; in a ring of those that the rank has.
void expand_keys(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  const double heads = work.heads();
  const double keys = work.prefill.requests * work.prefill.kv_len / (gathers_keys(work) ? 1 : work.cp);
  linear.project(kUpKv, "W_UKV", keys, heads * (m.qk_nope_head_dim + m.v_head_dim), m.kv_lora_rank);
  linear.add(kRotary, elementwise("copy k_nope into K", keys * heads * m.qk_nope_head_dim, 2));
  linear.add(kRotary, memory(Family::strided, "broadcast k_rope to heads", keys * heads * m.qk_rope_head_dim * kBf16));
}

void rotate_and_cache_mla(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  const double heads = work.heads();
  const double t = work.tokens();
  linear.add(kRotary, memory(Family::strided, "rotary q and k, write cache",
                             t * (2 * heads * m.qk_rope_head_dim + 2 * (m.kv_lora_rank + m.qk_rope_head_dim)) * kBf16));
}

void project_gqa(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  const double heads = work.heads() + work.kv_heads();
  const double t = work.tokens();
  linear.project(kQkv, "W_QKV", t, (heads + work.kv_heads()) * m.head_dim, m.hidden_size);
  if (m.qk_norm != QkNorm::none)
    linear.add(kAttentionNorms, norm("RMSNorm of q and k heads", t, heads * m.head_dim, 2));
  linear.add(kRotary, memory(Family::strided, "rotary q and k, write cache",
                             t * (2 * heads + 2 * work.kv_heads()) * m.head_dim * kBf16));
}

// Of a rank's heads.
AttentionShape shape_of(const InferenceWork& work, const Sequences& sequences) {
  AttentionShape shape;
  shape.batch = sequences.requests;
  shape.heads = work.heads();
  shape.query_len = sequences.query_len;
  shape.kv_len = sequences.kv_len;
  shape.cache = work.model.kv_cache;
  shape.kv_heads = work.kv_heads();
  shape.qk_dim = work.model.head_dim;
  shape.v_dim = work.model.head_dim;
  return shape;
}

// Of the queries that a rank has of a prompt, dealt out among `cp`: as if they followed each other in the middle.
// With `blocks` of the keys apart, each query sees the same share of every block on average.
double keys_of_part(const Sequences& prompts, int cp, int blocks) {
  const double mean_seen = prompts.kv_len - cp * prompts.query_len / 2;
  return mean_seen / blocks + prompts.query_len / 2;
}

// `blocks`: that the keys are split into, of which this is one.
Operator prompts_core(const InferenceWork& work, const LayerAttention& attention, int blocks) {
  const Architecture& m = work.model;
  AttentionShape shape = shape_of(work, work.prefill);
  shape.kv_len = keys_of_part(work.prefill, work.cp, blocks);
  if (attention.kind == AttentionKind::mla) {
    shape.kv_heads = shape.heads;
    shape.qk_dim = m.qk_nope_head_dim + m.qk_rope_head_dim;
    shape.v_dim = m.v_head_dim;
  }
  return prefill_core(shape, attention.window);
}

// One block of keys after the other, while the next one is on its way; partial results are weighed by their sums.
void attend_in_ring(Linear& linear, const InferenceWork& work, const LayerAttention& attention) {
  const double keys = work.prefill.requests * work.prefill.kv_len / work.cp;
  for (int block = 1; block < work.cp; ++block) linear.add(kKeyTransfer, pass_keys_on(work, keys));
  const Operator core = prompts_core(work, attention, work.cp);
  const double outputs = work.tokens() * work.heads() * core.attention.v_dim;
  for (int block = 0; block < work.cp; ++block) {
    linear.add(kCore, core);
    linear.ops().back().awaits = block;
    if (block > 0)
      linear.add(kCore, memory(Family::streaming, "merge partial attention", outputs * (kBf16 + 2 * kFp32)));
  }
}

void attend_to_prompts(Linear& linear, const InferenceWork& work, const LayerAttention& attention) {
  const bool ring = work.cp > 1 && work.context == ContextMode::ring;
  const bool windowed = attention.window > 0 && attention.window < work.prefill.kv_len;
  if (ring && !windowed) return attend_in_ring(linear, work, attention);
  // A window reaches back into a neighbour's keys alone, from the begin of each of a rank's two pieces.
  if (ring) linear.add(kKeyTransfer, pass_keys_on(work, 2 * work.prefill.requests * attention.window));
  linear.add(kCore, prompts_core(work, attention, 1));
  if (ring) linear.ops().back().awaits = 1;
}

Operator decode_core(const InferenceWork& work, const LayerAttention& attention) {
  const Architecture& m = work.model;
  AttentionShape shape = shape_of(work, work.decode);
  if (attention.kind == AttentionKind::mla) {
    shape.kv_heads = 1;
    shape.qk_dim = m.kv_lora_rank + m.qk_rope_head_dim;
    shape.v_dim = m.kv_lora_rank;
    return mla_decode_core(shape);
  }
  if (attention.window > 0) shape.kv_len = std::min(shape.kv_len, static_cast<double>(attention.window));
  return gqa_decode_core(shape);
}

// The expert choice: scores, groups and top-k in one kernel, weights in another; trtllm-gen's experts choose
// themselves.
void route(Linear& linear, const InferenceWork& work) {
  const Architecture& m = work.model;
  const double t = work.own_tokens();
  linear.add(kRouterGate, linear_gemm(Precision::bf16, "router gate", t, m.n_routed_experts, m.hidden_size));
  if (work.backend == MoeBackend::trtllm_gen) return;
  linear.add(kRouterChoice, routing_scan("scores and top-k", t * m.n_routed_experts));
  linear.add(kRouterChoice, small("normalise weights"));
}

}  // namespace

std::vector<Operator> attention_before_core(const InferenceWork& work, const Block& block) {
  Linear linear(work.tensor_format(stored_format(work.model, kAttention, input_projection(work.model))));
  if (!comes_normed(work)) {
    linear.add(kNorms, norm("RMSNorm and residual add", work.tokens(), work.model.hidden_size, 4));
  }
  if (block.attention.kind == AttentionKind::gqa) {
    project_gqa(linear, work);
    if (gathers_keys(work)) linear.add(kKeyTransfer, gather_keys(work));
    return linear.ops();
  }
  project_mla(linear, work);
  rotate_and_cache_mla(linear, work);
  if (work.decode.any()) {
    linear.add(kUpKv, per_head("absorb W_UK", work.decode.tokens(), work.heads(), work.model.kv_lora_rank,
                               work.model.qk_nope_head_dim));
  }
  if (gathers_keys(work)) linear.add(kKeyTransfer, gather_keys(work));
  if (work.prefill.any()) expand_keys(linear, work);
  return linear.ops();
}

std::vector<Operator> attention_from_core(const InferenceWork& work, const Block& block) {
  const bool mla = block.attention.kind == AttentionKind::mla;
  const Architecture& m = work.model;
  const double heads = work.heads();
  Linear linear(work.tensor_format(stored_format(m, kAttention, kOutputProjection)));
  if (work.prefill.any()) attend_to_prompts(linear, work, block.attention);
  if (work.decode.any()) linear.add(kCore, decode_core(work, block.attention));
  if (mla && work.decode.any()) {
    linear.add(kUpKv, per_head("absorb W_UV", work.decode.tokens(), heads, m.v_head_dim, m.kv_lora_rank));
  }
  linear.project(kOutput, "W_O", work.tokens(), m.hidden_size, heads * (mla ? m.v_head_dim : m.head_dim));
  const bool dense = block.kind == BlockKind::dense_layer;
  const bool scatters = work.scatters_tokens() && !dense;
  if (work.tp > 1) linear.add(kAttentionSum, scatters ? scatter_tokens(work) : all_reduce_tokens(work));
  if (scatters || !norms_in_all_reduce(work)) {
    const double rows = scatters ? work.own_tokens() : work.tokens();
    linear.add(kNorms, norm("RMSNorm and residual add", rows, m.hidden_size, 4));
  }
  if (dense) return linear.ops();
  route(linear, work);
  // DeepEP's low-latency kernels cast as they send
  if (work.dispatch != Precision::bf16 && !work.low_latency()) {
    linear.add(kDispatchInput, cast("cast dispatch input to " + name_of(work.dispatch), work.own_tokens(),
                                    m.hidden_size, work.dispatch));
  }
  return linear.ops();
}

}  // namespace moeline

// Multi-head latent attention. Symbols as in the DeepSeek-V2 paper: W_DQ and W_UQ project queries down and up, W_DKV
// and W_UKV keys and values, W_O the output. In decode W_UK and W_UV are absorbed: queries and outputs are projected
// into the latent space head by head, and the cache is read as it is (section 2.1.2 there).
//
// With an indexer, prompts no longer than it chooses keys expand theirs as usual; longer ones go by absorbed products
// over the chosen latents, like tokens in decode (as SGLang runs DeepSeek-V3.2).
#include "moe/attention_core.hpp"
#include "moe/attention_kinds.hpp"
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

void project(Linear& linear, const AttentionWork& of) {
  const Architecture& m = of.work.model;
  const double query = 1.0 * of.attention.heads * of.attention.qk_dim;
  const double latent = m.kv_lora_rank + m.qk_rope_head_dim;
  const double t = of.work.tokens();
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
void expand_keys(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const Architecture& m = work.model;
  const double heads = of.attention.heads;
  const double keys = work.prefill.requests * work.prefill.kv_len / (gathers_keys(work) ? 1 : work.cp);
  linear.project(kUpKv, "W_UKV", keys, heads * (m.qk_nope_head_dim + m.v_head_dim), m.kv_lora_rank);
  linear.add(kRotary, elementwise("copy k_nope into K", keys * heads * m.qk_nope_head_dim, 2));
  linear.add(kRotary, memory(Family::strided, "broadcast k_rope to heads", keys * heads * m.qk_rope_head_dim * kBf16));
}

void rotate_and_cache(Linear& linear, const AttentionWork& of) {
  const Architecture& m = of.work.model;
  const double heads = of.attention.heads;
  linear.add(kRotary, memory(Family::strided, "rotary q and k, write cache",
                             of.work.tokens() *
                                 (2 * heads * m.qk_rope_head_dim + 2 * (m.kv_lora_rank + m.qk_rope_head_dim)) * kBf16));
}

AttentionShape absorbed(const AttentionWork& of, const Sequences& sequences) {
  const Architecture& m = of.work.model;
  AttentionShape shape = core_shape(of, sequences);
  shape.kv_heads = 1;
  shape.qk_dim = m.kv_lora_rank + m.qk_rope_head_dim;
  shape.v_dim = m.kv_lora_rank;
  return shape;
}

Operator absorbed_core(const AttentionWork& of, const Sequences& sequences) {
  AttentionShape shape = absorbed(of, sequences);
  if (!chooses(of, sequences)) return mla_decode_core(shape);
  shape.kv_len = most_keys(of.attention);
  const bool prompt = &sequences == &of.work.prefill;
  return sparse_core(shape, prompt ? sequences.requests * sequences.kv_len : 0);
}

// Of tokens whose queries go into the latent space.
double absorbed_tokens(const AttentionWork& of) {
  const InferenceWork& work = of.work;
  return work.decode.tokens() + (chooses(of, work.prefill) ? work.prefill.tokens() : 0);
}

// Queries from the latent of the attention's, one key per token, and a weight for each head; then the rotation of both
// and their casts, and the key into its cache.
void project_indexer(Linear& linear, const AttentionWork& of) {
  const KeySelection& s = of.attention.selection;
  if (s.heads == 0 || !s.own) return;
  const Architecture& m = of.work.model;
  const double t = of.work.tokens(), queries = 1.0 * s.heads * s.dim;
  linear.project(kIndexerQueries, "indexer W_Q", t, queries, m.q_lora_rank);
  linear.project(kIndexerKeys, "indexer W_K", t, s.dim, m.hidden_size);
  linear.add(kIndexerKeys, linear_gemm(Precision::bf16, "indexer head weights", t, s.heads, m.hidden_size));
  linear.add(kIndexerScores, rowwise("rotate and cast indexer queries and keys", t * (s.heads + 1),
                                     t * (queries + s.dim) * (2 * kBf16 + kBf16 + kFp8)));
}

}  // namespace

void project_latents(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  project(linear, of);
  rotate_and_cache(linear, of);
  project_indexer(linear, of);
  if (const double tokens = absorbed_tokens(of); tokens > 0) {
    linear.add(kUpKv, per_head("absorb W_UK", tokens, of.attention.heads, work.model.kv_lora_rank,
                               work.model.qk_nope_head_dim));
  }
  if (gathers_keys(work)) linear.add(kKeyTransfer, gather_keys(work, of.attention));
  if (work.prefill.any() && !chooses(of, work.prefill)) expand_keys(linear, of);
}

void attend_latents(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const Architecture& m = work.model;
  choose_keys(linear, of);
  if (chooses(of, work.prefill)) {
    linear.add(kCore, absorbed_core(of, work.prefill));
  } else if (work.prefill.any()) {
    attend_to_prompts(linear, of);
  }
  if (work.decode.any()) linear.add(kCore, absorbed_core(of, work.decode));
  if (const double tokens = absorbed_tokens(of); tokens > 0) {
    linear.add(kUpKv, per_head("absorb W_UV", tokens, of.attention.heads, m.v_head_dim, m.kv_lora_rank));
  }
  if (of.attention.gated) {
    linear.project(kOutputGate, "output gate", work.tokens(), 1.0 * of.attention.heads * m.v_head_dim, m.hidden_size);
    linear.add(kCore, elementwise("gate the output", work.tokens() * of.attention.heads * m.v_head_dim, 3));
  }
}

}  // namespace moeline

// Attention by way of latents: MLA, the indexer of sparse attention, and DeepSeek-V4's compressed keys.
#include <algorithm>

#include "moe/attention_kernels.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {

// The indexer of sparse attention (DeepSeek-V3.2, section 2): small heads score every key, and each query attends to
// the keys with the best sums. Scores are products in FP8, keys of the cache read once for each sequence; MiniMax-M3
// takes the best key of each block in BF16 and chooses blocks. Every rank has the whole indexer; of prompts a stack may
// have each rank of an attention group score a part of the queries, in a row, and gather what they choose.

namespace {

using namespace module_names;

// Of the keys that a query may see, compressed ones where they are compressed.
double indexed(const LayerAttention& attention, double keys) {
  return attention.compress_ratio > 0 ? keys / attention.compress_ratio : keys;
}

// Of prompts in a row, the last of `parts` equal ones: what the rank has that sees the most keys.
Sequences last_part(const Sequences& prompts, int parts) {
  const double tokens = prompts.tokens() / parts;
  const double query_len = std::min(prompts.query_len, tokens);
  return {.requests = tokens / query_len, .query_len = query_len, .kv_len = prompts.kv_len};
}

void score(Linear& linear, const AttentionWork& of, const Sequences& sequences, bool is_part) {
  const KeySelection& s = of.attention.selection;
  const bool bf16 = of.attention.kind == AttentionKind::gqa;
  const double keys = sequences.requests * indexed(of.attention, sequences.kv_len);
  // A query sees half of the new keys on average.
  const double seen = indexed(of.attention, sequences.kv_len - (sequences.query_len - 1) / 2);
  const IndexShape shape{.batch = sequences.requests,
                         .query_len = sequences.query_len,
                         .kv_len = indexed(of.attention, sequences.kv_len),
                         .pairs = sequences.tokens() * seen,
                         .heads = 1.0 * s.heads,
                         .dim = 1.0 * s.dim,
                         .top_k = 1.0 * s.top_k,
                         .block = 1.0 * s.block,
                         .precision = bf16 ? Precision::bf16 : Precision::fp8};
  Operator scores = index_scores(shape, keys);
  if (!is_part) scores.recomputed_flops = scores.flops * (1 - 1.0 / of.work.tp);  // which the group's other ranks have
  linear.add(kIndexerScores, scores);
  linear.add(kIndexerChoice, index_choice(shape));
}

}  // namespace

double most_keys(const LayerAttention& attention) {
  return 1.0 * attention.selection.top_k * attention.selection.block;
}

bool chooses(const LayerAttention& attention, const Sequences& sequences) {
  return attention.selection.heads > 0 && sequences.any() && sequences.kv_len > most_keys(attention);
}

void choose_keys(Linear& linear, const AttentionWork& of) {
  if (of.attention.selection.heads == 0 || !of.attention.selection.own) return;
  for (const Sequences* sequences : {&of.work.prefill, &of.work.decode}) {
    if (!sequences->any()) continue;
    const bool splits = of.work.splits_indexer && sequences == &of.work.prefill;
    score(linear, of, splits ? last_part(*sequences, of.work.tp) : *sequences, splits);
    if (splits) linear.add(kIndexerChoice, gather_choices(of.work, of.attention.selection.top_k));
  }
}

// DeepSeek-V4's attention: queries by way of a latent, one latent that is key and value of all heads, a window of the
// last tokens, and beyond it tokens compressed together: some of them, chosen by an indexer over keys of its own (CSA),
// or all (HCA). Outputs are projected down in groups of heads, and back up together.
//
// Kernels as SGLang has them: one GEMM into both latents, compressors in BF16, the core over windows and compressed
// keys in one kernel, in prompts as well.

namespace {

using namespace kernels;
using namespace module_names;

// Two projections of each token, weighed and summed with its neighbours' once their block is full.
void compress(Linear& linear, const AttentionWork& of, double dim) {
  const LayerAttention& a = of.attention;
  const double t = of.work.tokens(), columns = 2 * overlap_of(a) * dim;
  linear.add(kCompressor,
             linear_gemm(Precision::bf16, "compressor projections", t, columns, of.work.model.hidden_size));
  linear.add(kCompressor, rowwise("compress and write cache", t, t * columns * (kBf16 + 2 * kFp32)));
}

void project_compressed_indexer(Linear& linear, const AttentionWork& of) {
  const KeySelection& s = of.attention.selection;
  if (s.heads == 0) return;
  const Architecture& m = of.work.model;
  const double t = of.work.tokens(), queries = 1.0 * s.heads * s.dim;
  compress(linear, of, s.dim);
  linear.project(kIndexerQueries, "indexer W_Q", t, queries, m.q_lora_rank);
  linear.add(kIndexerKeys, linear_gemm(Precision::bf16, "indexer head weights", t, s.heads, m.hidden_size));
  linear.add(kIndexerScores,
             rowwise("rotate and cast indexer queries", t * s.heads, t * queries * (2 * kBf16 + kBf16 + kFp8)));
}

// Keys that the last query of a sequence attends to.
double keys_of(const LayerAttention& a, double kv_len) {
  const double near = std::min(kv_len, 1.0 * a.window);
  if (a.compress_ratio == 0) return near;
  const double far = kv_len / a.compress_ratio;
  return near + (a.selection.heads > 0 ? std::min(far, 1.0 * a.selection.top_k) : far);
}

// In prompts a query sees half of the new keys on average; what a sequence has is read once at the least.
Operator core(const AttentionWork& of, const Sequences& sequences) {
  AttentionShape shape = core_shape(of, sequences);
  const LayerAttention& a = of.attention;
  shape.kv_heads = 1;
  shape.kv_len = keys_of(a, sequences.kv_len - (sequences.query_len - 1) / 2);
  const bool prompt = &sequences == &of.work.prefill;
  const double held = sequences.kv_len + (a.compress_ratio > 0 ? sequences.kv_len / a.compress_ratio : 0);
  return sparse_core(shape, prompt ? sequences.requests * held : 0);
}

}  // namespace

void project_compressed(Linear& linear, const AttentionWork& of) {
  const Architecture& m = of.work.model;
  const LayerAttention& a = of.attention;
  const double t = of.work.tokens(), query = 1.0 * a.heads * a.qk_dim;
  linear.project(kDownProjections, "W_DQ and W_KV", t, m.q_lora_rank + a.qk_dim, m.hidden_size);
  linear.add(kAttentionNorms, norm("RMSNorm q and kv", t, m.q_lora_rank + a.qk_dim, 2));
  linear.project(kUpQ, "W_UQ", t, query, m.q_lora_rank);
  linear.add(kRotary,
             rowwise("norm and rotary of q heads, write cache", t * a.heads, t * 2 * (query + a.qk_dim) * kBf16));
  if (a.compress_ratio > 0) compress(linear, of, a.qk_dim);
  project_compressed_indexer(linear, of);
}

void attend_compressed(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const Architecture& m = work.model;
  choose_keys(linear, of);
  for (const Sequences* sequences : {&work.prefill, &work.decode}) {
    if (sequences->any()) linear.add(kCore, core(of, *sequences));
  }
  const double t = work.tokens(), groups = std::max(1.0, 1.0 * m.o_groups / work.tp);
  const double outputs = 1.0 * of.attention.heads * of.attention.v_dim;
  linear.add(kRotary, memory(Family::strided, "rotate the output back",
                             t * of.attention.heads * 2 * m.qk_rope_head_dim * kBf16));
  linear.add(kOutputDown,
             per_head_gemm(Precision::bf16, "W_O down by groups", groups, t, m.o_lora_rank, outputs / groups));
}

// Multi-head latent attention. Symbols as in the DeepSeek-V2 paper: W_DQ and W_UQ project queries down and up, W_DKV
// and W_UKV keys and values, W_O the output. In decode W_UK and W_UV are absorbed: queries and outputs are projected
// into the latent space head by head, and the cache is read as it is (section 2.1.2 there).
//
// With an indexer, prompts no longer than it chooses keys expand theirs as usual; longer ones go by absorbed products
// over the chosen latents, like tokens in decode (as SGLang runs DeepSeek-V3.2).

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
  const double columns = 2 * heads * m.qk_rope_head_dim + 2 * (m.kv_lora_rank + m.qk_rope_head_dim);
  linear.add(kRotary, rotary_store(of.work.tokens() * columns * kBf16));
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
  if (!chooses(of.attention, sequences)) return mla_decode_core(shape);
  shape.kv_len = most_keys(of.attention);
  const bool prompt = &sequences == &of.work.prefill;
  return sparse_core(shape, prompt ? sequences.requests * sequences.kv_len : 0);
}

// Of tokens whose queries go into the latent space.
double absorbed_tokens(const AttentionWork& of) {
  const InferenceWork& work = of.work;
  return work.decode.tokens() + work.padded_rows() + (chooses(of.attention, work.prefill) ? work.prefill.tokens() : 0);
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
  if (work.prefill.any() && !chooses(of.attention, work.prefill)) expand_keys(linear, of);
}

void attend_latents(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  const Architecture& m = work.model;
  choose_keys(linear, of);
  if (chooses(of.attention, work.prefill)) {
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

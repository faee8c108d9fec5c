// DeepSeek-V4's attention: queries by way of a latent, one latent that is key and value of all heads, a window of the
// last tokens, and beyond it tokens compressed together: some of them, chosen by an indexer over keys of its own (CSA),
// or all (HCA). Outputs are projected down in groups of heads, and back up together.
//
// Kernels as SGLang has them: one GEMM into both latents, compressors in BF16, the core over windows and compressed
// keys in one kernel, in prompts as well.
#include <algorithm>

#include "moe/attention_core.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"

namespace moeline {
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

}  // namespace moeline

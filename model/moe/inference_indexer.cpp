// The indexer of sparse attention (DeepSeek-V3.2, section 2): small heads score every key, and each query attends to
// the keys with the best sums. Scores are products in FP8, keys of the cache read once for each sequence; MiniMax-M3
// takes the best key of each block in BF16 and chooses blocks. As in SGLang, every rank has the whole indexer.
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/sparse_kernels.hpp"

namespace moeline {
namespace {

using namespace module_names;

// Of the keys that a query may see, compressed ones where they are compressed.
double indexed(const LayerAttention& attention, double keys) {
  return attention.compress_ratio > 0 ? keys / attention.compress_ratio : keys;
}

// `pairs`: of a query and a key, all sequences together; `keys`: that are read.
void score(Linear& linear, const AttentionWork& of, const Sequences& sequences, double pairs, double keys) {
  const KeySelection& s = of.attention.selection;
  const bool bf16 = of.attention.kind == AttentionKind::gqa;
  const IndexShape shape{.batch = sequences.requests,
                         .query_len = sequences.query_len,
                         .kv_len = indexed(of.attention, sequences.kv_len),
                         .pairs = pairs,
                         .heads = 1.0 * s.heads,
                         .dim = 1.0 * s.dim,
                         .top_k = 1.0 * s.top_k,
                         .block = 1.0 * s.block,
                         .precision = bf16 ? Precision::bf16 : Precision::fp8};
  Operator scores = index_scores(shape, keys);
  scores.recomputed_flops = scores.flops * (1 - 1.0 / of.work.tp);  // what the other ranks of the group compute, too
  linear.add(kIndexerScores, scores);
  linear.add(kIndexerChoice, index_choice(shape));
}

}  // namespace

double most_keys(const LayerAttention& attention) {
  return 1.0 * attention.selection.top_k * attention.selection.block;
}

bool chooses(const AttentionWork& of, const Sequences& sequences) {
  return of.attention.selection.heads > 0 && sequences.any() && sequences.kv_len > most_keys(of.attention);
}

void choose_keys(Linear& linear, const AttentionWork& of) {
  if (of.attention.selection.heads == 0 || !of.attention.selection.own) return;
  for (const Sequences* sequences : {&of.work.prefill, &of.work.decode}) {
    if (!sequences->any()) continue;
    const double keys = sequences->requests * indexed(of.attention, sequences->kv_len);
    // A query sees half of the new keys on average.
    const double seen = indexed(of.attention, sequences->kv_len - (sequences->query_len - 1) / 2);
    score(linear, of, *sequences, sequences->tokens() * seen, keys);
  }
}

}  // namespace moeline

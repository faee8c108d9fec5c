// Grouped-query attention: over all keys, a sliding window, or the keys of a chunk.
#include <algorithm>

#include "moe/attention_core.hpp"
#include "moe/attention_kinds.hpp"
#include "moe/module_names.hpp"
#include "moe/tensor_parallel.hpp"

namespace moeline {
namespace {

using namespace kernels;
using namespace module_names;

// Prompts whose tokens see those of their own chunk alone are as many prompts as they have chunks.
void attend_in_chunks(Linear& linear, const AttentionWork& of) {
  InferenceWork work = of.work;
  const double chunk = of.attention.chunk;
  Sequences& prompts = work.prefill;
  const double cached = prompts.kv_len - prompts.query_len;
  const double chunks = std::max(1.0, prompts.query_len / chunk);
  prompts.requests *= chunks;
  prompts.query_len /= chunks;
  prompts.kv_len = prompts.query_len + std::min(cached, chunk - prompts.query_len);
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
  if (chooses(of, of.work.decode)) return chosen_core(of, of.work.decode, 0);
  AttentionShape shape = core_shape(of, of.work.decode);
  shape.kv_len = keys_seen(of.attention, shape.kv_len);
  return gqa_decode_core(shape);
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
  if (work.model.qk_norm != QkNorm::none) {
    linear.add(kAttentionNorms, norm("RMSNorm of q and k heads", t, query + key, 2));
  }
  linear.add(kRotary,
             memory(Family::strided, "rotary q and k, write cache", t * (2 * (query + key) + 2 * value) * kBf16));
  if (gathers_keys(work)) linear.add(kKeyTransfer, gather_keys(work, a));
}

void attend_groups(Linear& linear, const AttentionWork& of) {
  const InferenceWork& work = of.work;
  choose_keys(linear, of);
  if (chooses(of, work.prefill)) {
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

}  // namespace moeline

#include "moe/attention_core.hpp"

#include <algorithm>

#include "moe/kernels.hpp"

namespace moeline {
namespace {

using namespace kernels;

// Query-key pairs of one head and sequence; a query counts half of its own key, as in S^2 / 2.
double causal_pairs(const AttentionShape& shape, double window) {
  const double first = shape.kv_len - shape.query_len;  // keys before the first query
  const double full = shape.query_len * first + shape.query_len * shape.query_len / 2;
  if (window <= 0 || shape.kv_len <= window) return full;
  const double growing = std::max(0.0, window - first);  // queries that do not fill the window yet
  return growing * first + growing * growing / 2 + (shape.query_len - growing) * window;
}

Operator attention(Family family, const char* name, const AttentionShape& shape) {
  Operator op;
  op.name = name;
  op.family = family;
  op.attention = shape;
  op.measured_as = name_of(family);
  return op;
}

// Stacks have kernels of their own for absorbed MLA, for MLA with keys and values expanded, and for heads that share no
// keys or are wider than 128.
std::string prefill_family(const AttentionShape& shape) {
  constexpr double kWidestHead = 256;
  const bool latent = shape.qk_dim != shape.v_dim;
  const std::string name = !latent ? "gqa_prefill" : shape.v_dim > kWidestHead ? "mla_prefill_absorbed" : "mla_prefill";
  return shape.math == Precision::bf16 ? name : name + "_fp8";
}

std::string decode_family(const AttentionShape& shape) {
  constexpr double kUsualHead = 128;
  const bool wide = shape.qk_dim > kUsualHead, shares = shape.heads > shape.kv_heads;
  const std::string name = wide ? "wide_decode" : shares ? "gqa_decode" : "mha_decode";
  return shape.cache == Precision::bf16 ? name : name + "_fp8";
}

}  // namespace

Operator prefill_core(const AttentionShape& shape, double window) {
  Operator op = attention(Family::attention_forward, "FlashAttention forward", shape);
  op.measured_as = prefill_family(shape);
  op.precision = shape.math;
  if (window > 0 && window < shape.kv_len) op.attention.window = window;
  op.flops = 2 * shape.batch * shape.heads * causal_pairs(shape, window) * (shape.qk_dim + shape.v_dim);
  const double queries = shape.batch * shape.query_len * shape.heads * (shape.qk_dim + shape.v_dim);
  const double seen = window > 0 ? std::min(shape.kv_len, window + shape.query_len) : shape.kv_len;
  const double keys = shape.batch * seen * shape.kv_heads * (shape.qk_dim + shape.v_dim);
  op.bytes = (queries + keys) * kBf16;
  return op;
}

Operator prefill_backward_core(const AttentionShape& shape, double window) {
  Operator op = prefill_core(shape, window);
  op.name = "FlashAttention backward";
  op.family = Family::attention_backward;
  op.measured_as = "";
  op.recomputed_flops = op.flops * shape.qk_dim / (shape.qk_dim + shape.v_dim);
  op.flops *= (3 * shape.qk_dim + 2 * shape.v_dim) / (shape.qk_dim + shape.v_dim);
  return op;
}

Operator mla_decode_core(const AttentionShape& shape) {
  Operator op = attention(Family::mla_decode, "MLA decode core", shape);
  const double width = shape.qk_dim + shape.v_dim;
  op.flops = 2 * shape.batch * shape.heads * shape.query_len * shape.kv_len * width;
  op.bytes = shape.batch *
             (shape.kv_len * shape.qk_dim * number_bytes(shape.cache) + shape.query_len * shape.heads * width * kBf16);
  if (shape.cache != Precision::bf16) op.measured_as += "_fp8";
  return op;
}

Operator gqa_decode_core(const AttentionShape& shape) {
  Operator op = attention(Family::gqa_decode, "GQA decode core", shape);
  const double width = shape.qk_dim + shape.v_dim;
  const double seen = shape.window > 0 ? std::min(shape.kv_len, shape.window + shape.query_len - 1) : shape.kv_len;
  op.flops = 2 * shape.batch * shape.heads * shape.query_len * seen * width;
  op.bytes =
      shape.batch * width * (seen * shape.kv_heads * number_bytes(shape.cache) + shape.query_len * shape.heads * kBf16);
  op.measured_as = decode_family(shape);
  return op;
}

Operator sparse_core(const AttentionShape& shape, double distinct) {
  Operator op = attention(Family::sparse_attention, "sparse attention core", shape);
  const double queries = shape.batch * shape.query_len, width = shape.qk_dim + shape.v_dim;
  op.flops = 2 * queries * shape.heads * shape.kv_len * width;
  const double key = shape.kv_heads * (shape.kv_heads == 1 ? shape.qk_dim : width) * number_bytes(shape.cache);
  const double keys = distinct > 0 ? std::min(distinct, queries * shape.kv_len) : queries * shape.kv_len;
  op.bytes = keys * key + queries * shape.heads * width * kBf16;
  op.measured_as = shape.kv_heads > 1 ? "" : distinct > 0 ? "sparse_prefill" : "mla_decode";
  if (op.measured_as == "mla_decode") {
    op.attention.batch = queries;
    op.attention.query_len = 1;
    if (shape.cache != Precision::bf16) op.measured_as += "_fp8";
  }
  return op;
}

}  // namespace moeline

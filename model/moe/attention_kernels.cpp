#include "moe/attention_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

namespace {

constexpr const char *kCudnnForward = "cudnn_forward", *kCudnnBackward = "cudnn_backward";

}  // namespace

Operator by_cudnn(Operator core) {
  const bool forward = core.family == Family::attention_forward;
  core.name = forward ? "cudnn_generated_fort_native_sdpa_fprop" : "cudnn_generated_fort_native_sdpa_bprop";
  core.measured_as = forward ? kCudnnForward : kCudnnBackward;
  return core;
}

bool is_by_cudnn(const Operator& core) {
  return core.measured_as == kCudnnForward || core.measured_as == kCudnnBackward;
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

using namespace kernels;

double causal_pairs(double batch, double query_len, double kv_len) {
  return batch * query_len * (kv_len - (query_len - 1) / 2);
}

Operator index_scores(const IndexShape& shape, double keys) {
  const bool fp8 = shape.precision == Precision::fp8;
  const double number = number_bytes(shape.precision);
  Operator op;
  op.name = "indexer scores";
  op.family = Family::index_scores;
  op.precision = shape.precision;
  op.attention = {.batch = shape.batch,
                  .heads = shape.heads,
                  .kv_heads = 1,
                  .query_len = shape.query_len,
                  .kv_len = shape.kv_len,
                  .qk_dim = shape.dim,
                  .v_dim = 0,
                  .math = shape.precision};
  op.flops = 2 * shape.pairs * shape.heads * shape.dim;
  const double queries = shape.batch * shape.query_len * shape.heads * shape.dim * number;
  op.bytes = queries + keys * (shape.dim * number + (fp8 ? kFp32 : 0)) + shape.pairs / shape.block * kFp32;
  if (fp8 && shape.block == 1) op.measured_as = "indexer_scores";
  return op;
}

Operator index_choice(const IndexShape& shape) {
  const double queries = shape.batch * shape.query_len, scores = shape.pairs / shape.block;
  const double chosen = std::min(scores, queries * shape.top_k);
  Operator op = memory(Family::streaming, "top-k of the scores", (scores + chosen) * kFp32);
  op.blocks = static_cast<int>(std::ceil(std::max(1.0, queries)));
  op.items = scores;
  op.m = queries;
  op.n = shape.top_k;
  op.hot = true;  // the kernel in front of it wrote the scores
  op.attention = {.batch = shape.batch, .query_len = shape.query_len, .kv_len = shape.kv_len / shape.block};
  if (shape.block == 1) op.measured_as = "indexer_choice";
  return op;
}

Operator mix_streams(StreamPart part, double rows, double hidden, double streams) {
  const bool pre = part == StreamPart::pre;
  Operator op = pre ? norm("mix hidden states", rows, hidden, streams + 1)
                    : norm("add to hidden states", rows, hidden, 2 * streams + 1);
  op.m = rows;
  op.k = hidden;
  op.measured_as = pre ? "hyper_connection_pre" : "hyper_connection_post";
  return op;
}

namespace {

using namespace kernels;

constexpr AttentionKind kKinds[] = {AttentionKind::delta_net, AttentionKind::kda, AttentionKind::mamba,
                                    AttentionKind::lightning};

// A delta rule writes what the state does not know yet, for which it is read once more.
bool is_delta(const StateShape& shape) {
  return shape.kind == AttentionKind::delta_net || shape.kind == AttentionKind::kda;
}

// A state has the same size whatever came before.
AttentionShape shape_of(const StateShape& shape) {
  return {.batch = shape.batch,
          .heads = shape.heads,
          .kv_heads = shape.key_heads,
          .query_len = shape.query_len,
          .kv_len = shape.query_len,
          .qk_dim = shape.qk_dim,
          .v_dim = shape.v_dim};
}

Operator core(const StateShape& shape, Family family, const char* name) {
  Operator op;
  op.name = name;
  op.family = family;
  op.attention = shape_of(shape);
  op.measured_as = fmt::format("{}_{}", state_name(shape.kind), family == Family::state_scan ? "prefill" : "decode");
  return op;
}

}  // namespace

double StateShape::tokens() const { return std::round(batch * query_len); }

std::string state_name(AttentionKind kind) {
  return kind == AttentionKind::mamba       ? "mamba"
         : kind == AttentionKind::lightning ? "lightning"
         : kind == AttentionKind::kda       ? "kda"
                                            : "delta_net";
}

AttentionKind state_kind_named(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](AttentionKind kind) { return state_name(kind) == name; });
  return found == std::end(kKinds) ? AttentionKind::none : *found;
}

Operator state_scan(const StateShape& shape) {
  const bool delta = is_delta(shape);
  const double chunk = std::min(shape.chunk, shape.query_len);
  const double within = delta ? 3 * shape.qk_dim + 2 * shape.v_dim : shape.qk_dim + shape.v_dim;
  const double across = (delta ? 3.0 : 2.0) * shape.qk_dim * shape.v_dim;
  Operator op = core(shape, Family::state_scan, delta ? "chunked delta rule" : "chunked scan");
  op.flops = 2 * shape.tokens() * shape.heads * (chunk * within + across);
  const double chunks = shape.batch * std::ceil(shape.query_len / chunk);
  op.bytes = shape.tokens() * (shape.convolved() + shape.values()) * kBf16 + 2 * chunks * shape.state() * kBf16 +
             2 * shape.batch * shape.state() * shape.state_bytes;
  return op;
}

Operator state_update(const StateShape& shape) {
  const bool delta = is_delta(shape);
  Operator op = core(shape, Family::state_update, delta ? "delta rule update" : "state update");
  op.flops = 2 * shape.tokens() * shape.state() * (delta ? 3 : 2);
  op.bytes = (shape.batch + shape.tokens()) * shape.state() * shape.state_bytes +
             shape.tokens() * (shape.convolved() + shape.values()) * kBf16;
  return op;
}

Operator state_convolution(const StateShape& shape, double width, bool decodes) {
  const double channels = shape.convolved(), kept = channels * (width - 1);
  Operator op = memory(Family::streaming, decodes ? "causal convolution update" : "causal convolution",
                       (2 * shape.tokens() * channels + 2 * shape.batch * kept) * kBf16);
  op.m = shape.tokens();
  op.n = channels;
  op.attention.batch = shape.batch;
  op.attention.query_len = shape.query_len;
  op.measured_as =
      fmt::format("conv{}_{}", shape.kind == AttentionKind::kda ? "_qkv" : "", decodes ? "decode" : "prefill");
  return op;
}

}  // namespace moeline

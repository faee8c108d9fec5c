// OPs of attention to chosen keys, and of hidden states in several streams.
#include <fmt/format.h>

#include <algorithm>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/attention_core.hpp"
#include "moe/sparse_kernels.hpp"

namespace moeline {
namespace {

IndexShape index_shape(const OpKeys& keys) {
  IndexShape shape;
  shape.batch = keys.size("batch", 1);
  shape.query_len = keys.size("query_len", 4096);
  shape.kv_len = keys.size("kv_len", 16384);
  if (shape.kv_len < shape.query_len) {
    throw keys.spec().error(
        "kv_len", fmt::format("counts the new tokens: {} is below query_len, {}", shape.kv_len, shape.query_len));
  }
  shape.pairs = causal_pairs(shape.batch, shape.query_len, shape.kv_len);
  return shape;
}

}  // namespace

RequestedOp index_scores_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"batch", "query_len", "kv_len", "heads", "head_dim", "dtype", "l2"});
  IndexShape shape = index_shape(keys);
  shape.heads = keys.size("heads", 64);
  shape.dim = keys.size("head_dim", 128);
  shape.precision = precision_named(keys.choice("dtype", {"fp8", "bf16"}));
  return keys.requested(text, {index_scores(shape, shape.batch * shape.kv_len)}, machine);
}

RequestedOp index_choice_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"batch", "query_len", "kv_len", "top_k"});
  IndexShape shape = index_shape(keys);
  shape.top_k = keys.size("top_k", 2048);
  return keys.requested(text, {index_choice(shape)}, machine);
}

RequestedOp sparse_attention_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"phase", "batch", "query_len", "kv_len", "heads", "top_k", "qk_dim", "v_dim", "distinct",
                           "kv_dtype", "l2"});
  const bool decodes = keys.choice("phase", {"prefill", "decode"}) == "decode";
  const double kv_len = keys.size("kv_len", 16384);
  const AttentionShape shape{.batch = keys.size("batch", decodes ? 64 : 1),
                             .heads = keys.size("heads", 128),
                             .kv_heads = 1,
                             .query_len = keys.size("query_len", decodes ? 1 : 4096),
                             .kv_len = std::min(kv_len, keys.size("top_k", 2048)),
                             .qk_dim = keys.size("qk_dim", 576),
                             .v_dim = keys.size("v_dim", 512),
                             .cache = precision_named(keys.choice("kv_dtype", {"bf16", "fp8"}))};
  const double given = keys.size_or_none("distinct");
  if (decodes && given > 0) throw keys.spec().error("distinct", "is of prompts: in decode each query has its own keys");
  const double distinct = given > 0 ? given : shape.batch * kv_len;
  return keys.requested(text, {sparse_core(shape, decodes ? 0 : distinct)}, machine);
}

RequestedOp hyper_connection_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"part", "tokens", "hidden", "streams", "times", "l2"});
  const StreamPart part = keys.choice("part", {"pre", "post"}) == "pre" ? StreamPart::pre : StreamPart::post;
  const Operator mixing =
      mix_streams(part, keys.size("tokens", 4096), keys.size("hidden", 7168), keys.size("streams", 4));
  constexpr int kMostTimes = 64;
  const int times = keys.spec().integer_or("times", 1, kMostTimes, 1);
  return keys.requested(text, std::vector<Operator>(static_cast<std::size_t>(times), mixing), machine);
}

}  // namespace moeline

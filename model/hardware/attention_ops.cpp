// OPs of attention: over a KV cache, to chosen keys, and over a state. And of hidden states in several streams.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/op_kinds.hpp"
#include "moe/attention_kernels.hpp"

namespace moeline {

// OPs of attention.

namespace {

// Keys count the new tokens, and heads share them in equal groups.
AttentionShape checked(const AttentionShape& shape, const Spec& spec) {
  if (shape.kv_len < shape.query_len) {
    throw spec.error("kv_len",
                     fmt::format("counts the new tokens: {} is below query_len, {}", shape.kv_len, shape.query_len));
  }
  if (std::fmod(shape.heads, shape.kv_heads) != 0) {
    throw spec.error("kv_heads", fmt::format("must divide heads: {} does not divide {}", shape.kv_heads, shape.heads));
  }
  return shape;
}

AttentionShape prompt_shape(const OpKeys& keys) {
  const double seq = keys.size("seq", 4096);
  const double heads = keys.size("heads", 128);
  const AttentionShape shape{.batch = keys.size("batch", 1),
                             .heads = heads,
                             .kv_heads = keys.size("kv_heads", static_cast<int>(heads)),
                             .query_len = seq,
                             .kv_len = seq + keys.size_or_none("cached_len"),
                             .qk_dim = keys.size("qk_dim", 192),
                             .v_dim = keys.size("v_dim", 128),
                             .math = precision_named(keys.choice("dtype", {"bf16", "fp8"}))};
  return checked(shape, keys.spec());
}

}  // namespace

RequestedOp mla_decode_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"batch", "kv_len", "query_len", "heads", "qk_dim", "v_dim", "kv_dtype", "l2"});
  const AttentionShape shape{.batch = keys.size("batch", 64),
                             .heads = keys.size("heads", 128),
                             .kv_heads = 1,
                             .query_len = keys.size("query_len", 1),
                             .kv_len = keys.size("kv_len", 4096),
                             .qk_dim = keys.size("qk_dim", 576),
                             .v_dim = keys.size("v_dim", 512),
                             .cache = precision_named(keys.choice("kv_dtype", {"bf16", "fp8"}))};
  return keys.requested(text, {mla_decode_core(checked(shape, keys.spec()))}, machine);
}

RequestedOp gqa_decode_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text,
                    {"batch", "kv_len", "query_len", "heads", "kv_heads", "head_dim", "kv_dtype", "window", "l2"});
  const double head_dim = keys.size("head_dim", 128), kv_len = keys.size("kv_len", 4096);
  const double window = keys.size_or_none("window");
  const AttentionShape shape{.batch = keys.size("batch", 64),
                             .heads = keys.size("heads", 64),
                             .kv_heads = keys.size("kv_heads", 4),
                             .query_len = keys.size("query_len", 1),
                             .kv_len = kv_len,
                             .qk_dim = head_dim,
                             .v_dim = head_dim,
                             .window = window < kv_len ? window : 0,
                             .cache = precision_named(keys.choice("kv_dtype", {"bf16", "fp8"}))};
  return keys.requested(text, {gqa_decode_core(checked(shape, keys.spec()))}, machine);
}

namespace {

Operator by_impl(Operator core, const OpKeys& keys) {
  return keys.choice("impl", {"flash_attention", "cudnn"}) == "cudnn" ? by_cudnn(std::move(core)) : core;
}

}  // namespace

RequestedOp attention_forward_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(
      text, {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window", "dtype", "impl", "l2"});
  return keys.requested(text, {by_impl(prefill_core(prompt_shape(keys), keys.size_or_none("window")), keys)}, machine);
}

RequestedOp attention_backward_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text,
                    {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window", "impl", "l2"});
  const Operator core = prefill_backward_core(prompt_shape(keys), keys.size_or_none("window"));
  return keys.requested(text, {by_impl(core, keys)}, machine);
}

// OPs of attention to chosen keys, and of hidden states in several streams.

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

// OPs of attention that keeps a state in the place of keys and values.

namespace {

// Heads share the keys in equal groups.
StateShape state_shape(const OpKeys& keys, const char* length, int usual_batch, int usual_length) {
  const double heads = keys.size("heads", 32);
  const StateShape shape{.kind = state_kind_named(keys.choice("kind", {"delta_net", "kda", "mamba", "lightning"})),
                         .batch = keys.size("batch", usual_batch),
                         .query_len = keys.size(length, usual_length),
                         .heads = heads,
                         .key_heads = keys.size("key_heads", static_cast<int>(heads)),
                         .qk_dim = keys.size("qk_dim", 128),
                         .v_dim = keys.size("v_dim", 128),
                         .chunk = keys.size("chunk", 64),
                         .state_bytes = keys.size("state_bytes", 4)};
  if (std::fmod(shape.heads, shape.key_heads) != 0) {
    throw keys.spec().error("key_heads",
                            fmt::format("must divide heads: {} does not divide {}", shape.key_heads, shape.heads));
  }
  return shape;
}

}  // namespace

RequestedOp state_scan_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text,
                    {"kind", "batch", "seq", "heads", "key_heads", "qk_dim", "v_dim", "chunk", "state_bytes", "l2"});
  return keys.requested(text, {state_scan(state_shape(keys, "seq", 1, 4096))}, machine);
}

RequestedOp state_update_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"kind", "batch", "query_len", "heads", "key_heads", "qk_dim", "v_dim", "state_bytes", "l2"});
  return keys.requested(text, {state_update(state_shape(keys, "query_len", 64, 1))}, machine);
}

RequestedOp state_convolution_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"kind", "phase", "batch", "seq", "heads", "key_heads", "qk_dim", "v_dim", "width", "l2"});
  const bool decodes = keys.choice("phase", {"prefill", "decode"}) == "decode";
  const StateShape shape = state_shape(keys, "seq", decodes ? 64 : 1, decodes ? 1 : 4096);
  return keys.requested(text, {state_convolution(shape, keys.size("width", 4), decodes)}, machine);
}

}  // namespace moeline

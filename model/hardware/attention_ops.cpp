// OPs of attention.
#include <fmt/format.h>

#include <cmath>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/attention_core.hpp"

namespace moeline {
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

RequestedOp attention_forward_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text,
                    {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window", "dtype", "l2"});
  return keys.requested(text, {prefill_core(prompt_shape(keys), keys.size_or_none("window"))}, machine);
}

RequestedOp attention_backward_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window", "l2"});
  return keys.requested(text, {prefill_backward_core(prompt_shape(keys), keys.size_or_none("window"))}, machine);
}

}  // namespace moeline

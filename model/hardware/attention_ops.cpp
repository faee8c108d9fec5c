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

}  // namespace

RequestedOp mla_decode_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"batch", "kv_len", "query_len", "heads", "qk_dim", "v_dim"});
  const AttentionShape shape{keys.size("batch", 64),    keys.size("heads", 128),   1,
                             keys.size("query_len", 1), keys.size("kv_len", 4096), keys.size("qk_dim", 576),
                             keys.size("v_dim", 512)};
  return {text, {mla_decode_core(checked(shape, keys.spec()))}, keys.all_sms(machine)};
}

RequestedOp gqa_decode_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"batch", "kv_len", "query_len", "heads", "kv_heads", "head_dim"});
  const double head_dim = keys.size("head_dim", 128);
  const AttentionShape shape{keys.size("batch", 64),
                             keys.size("heads", 64),
                             keys.size("kv_heads", 4),
                             keys.size("query_len", 1),
                             keys.size("kv_len", 4096),
                             head_dim,
                             head_dim};
  return {text, {gqa_decode_core(checked(shape, keys.spec()))}, keys.all_sms(machine)};
}

RequestedOp attention_forward_op(const std::string& text, const MachineFacts& machine) {
  const OpKeys keys(text, {"seq", "batch", "cached_len", "heads", "kv_heads", "qk_dim", "v_dim", "window"});
  const double seq = keys.size("seq", 4096);
  const double heads = keys.size("heads", 128);
  const AttentionShape shape{keys.size("batch", 1),
                             heads,
                             keys.size("kv_heads", static_cast<int>(heads)),
                             seq,
                             seq + keys.size_or_none("cached_len"),
                             keys.size("qk_dim", 192),
                             keys.size("v_dim", 128)};
  return {text, {prefill_core(checked(shape, keys.spec()), keys.size_or_none("window"))}, keys.all_sms(machine)};
}

}  // namespace moeline

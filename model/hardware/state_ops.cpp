// OPs of attention that keeps a state in the place of keys and values.
#include <fmt/format.h>

#include <cmath>

#include "hardware/op_keys.hpp"
#include "hardware/op_kinds.hpp"
#include "moe/state_kernels.hpp"

namespace moeline {
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

#include "moe/state_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe/kernels.hpp"

namespace moeline {
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

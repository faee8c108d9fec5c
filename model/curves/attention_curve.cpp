// Attention kernels.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "curves/curve.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

constexpr double kTile = 128;  // rows of queries in a tile, and keys in a block of FlashAttention
constexpr double kHalfTile = 64;

double tensor_cores_us(double flops, int sms, const MachineFacts& machine) {
  return flops_at_peak_us(flops, machine.bf16_tflops) * machine.sms / sms;
}

double hbm_us(double bytes, int sms, const MachineFacts& machine) {
  return bytes_at_peak_us(bytes, machine.hbm_GBps) * machine.sms / sms;
}

double tiled(double rows) { return rows <= kHalfTile ? kHalfTile : kTile * std::ceil(rows / kTile); }

double rows_of(const AttentionShape& a) { return a.heads / a.kv_heads * a.query_len; }

// A causal block on the diagonal is computed whole: half a block more than the triangle has.
Curve prefill(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double diagonal = 2 * a.batch * a.heads * a.query_len * kTile / 2 * (a.qk_dim + a.v_dim);
  return {{},
          {{"compute", {{Constant::attention_forward, tensor_cores_us(op.flops + diagonal, sms, machine)}}},
           {"latency", {{Constant::attention_latency, 1}}}}};
}

// Keys that one work item takes at most (FlashInfer, include/flashinfer/attention/scheduler.cuh, MLAPlan): an equal
// share of all keys, in whole steps.
double keys_per_part(double share) {
  if (share <= 8) return 32;
  if (share <= 16) return 64;
  if (share <= 32) return 128;
  if (share <= 64) return 192;
  return 256 * std::ceil(share / 256);
}

// Parts that each sequence of an MLA decode is split into, so that all SMs have work. A tile of 128 rows takes two SMs.
double mla_parts(const AttentionShape& a, int sms) {
  const double rows = rows_of(a);
  const double workers = std::max(1.0, rows <= kHalfTile ? sms : std::floor(sms / 2.0));
  const double keys = a.batch * std::ceil(rows / kTile) * a.kv_len;
  return std::ceil(a.kv_len / keys_per_part(std::ceil(keys / workers)));
}

Curve mla_decode(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double cache_bytes = a.batch * a.kv_len * a.qk_dim * number_bytes(a.cache);
  const double padding = tiled(rows_of(a)) / rows_of(a);
  return {{{Constant::mla_startup, overhead(machine)},
           {Constant::mla_merge, overhead(machine, std::log2(mla_parts(a, sms)))},
           {Constant::mla_queries, hbm_us(op.bytes - cache_bytes, sms, machine)}},
          {{"compute", {{Constant::mla_compute, tensor_cores_us(op.flops * padding, sms, machine)}}},
           {"memory", {{Constant::mla_memory, hbm_us(cache_bytes, sms, machine)}}}}};
}

// Two blocks fit on an SM; a sequence is split only where each part still gets a block of its own (FlashInfer,
// scheduler.cuh, DecodePlan).
double gqa_rows_to_merge(const AttentionShape& a, int sms) {
  const double blocks = a.batch * a.kv_heads * std::ceil(rows_of(a) / kTile);
  return 2 * blocks <= 2 * sms ? a.batch * a.heads * a.query_len : 0;
}

Curve gqa_decode(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const double padding = tiled(rows_of(a)) / rows_of(a);
  return {{{Constant::gqa_startup, overhead(machine)},
           {Constant::gqa_merge, overhead(machine, gqa_rows_to_merge(a, sms) / sms)}},
          {{"compute", {{Constant::gqa_compute, tensor_cores_us(op.flops * padding, sms, machine)}}},
           {"memory", {{Constant::gqa_memory, hbm_us(op.bytes, sms, machine)}}},
           {"latency", {{Constant::gqa_latency, overhead(machine)}}}}};
}

}  // namespace

Curve attention_curve(const Operator& op, int sms, const MachineFacts& machine) {
  switch (op.family) {
    case Family::attention_forward:
      return prefill(op, sms, machine);
    case Family::attention_backward:
      return {{{Constant::attention_backward, tensor_cores_us(op.flops, sms, machine)}}, {}};
    case Family::mla_decode:
      return mla_decode(op, sms, machine);
    case Family::gqa_decode:
      return gqa_decode(op, sms, machine);
    case Family::sparse_attention:
    case Family::index_scores:
    case Family::state_scan:
    case Family::state_update:
      return {};  // known by the tables of serving stacks alone
    default:
      moeline::check_failed("an attention kernel", __FILE__, __LINE__, name_of(op.family));
  }
}

}  // namespace moeline

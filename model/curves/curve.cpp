#include "curves/curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "curves/topology.hpp"
#include "moe/kernels.hpp"

namespace moeline {
namespace {

// What a memory-bound or routing kernel takes per byte or item.
Constant rate_of(Family family) {
  static const std::map<Family, Constant> kRates = {
      {Family::streaming, Constant::streaming},   {Family::rowwise, Constant::rowwise},
      {Family::cast_transpose, Constant::tiled},  {Family::swiglu, Constant::tiled},
      {Family::requantize, Constant::requantize}, {Family::recode_12bit, Constant::recode_12bit},
      {Family::strided, Constant::strided},       {Family::routing_scan, Constant::routing_scan},
      {Family::count_rows, Constant::count_rows}, {Family::map_rows, Constant::map_rows}};
  return kRates.at(family);
}

// A scan goes by millions of token-expert pairs, the others by thousands of rows.
double items_of(const Operator& op) { return op.items / (op.family == Family::routing_scan ? 1e6 : 1e3); }

double sum(const std::vector<Term>& terms, std::span<const double> constants) {
  double us = 0;
  for (const Term& term : terms) us += constants[static_cast<std::size_t>(term.constant)] * term.feature;
  return us;
}

// A kernel that fills the SMs once starts and ends as small ones do; those of several waves also ramp up and down,
// which is in the intercept of the large ones that were measured. One wave: 2048 threads on each SM that load 16 bytes
// each. Fewer blocks than SMs stream as slowly as their SMs do where accesses are strided; of whole rows they are so
// few bytes that it does not show.
Curve memory_curve(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kWaveBytesPerSm = 2048 * 16;
  const double several_waves = std::min(1.0, op.bytes / (kWaveBytesPerSm * machine.sms));
  const int streaming_sms = op.family == Family::strided && op.blocks > 0 ? std::min(op.blocks, sms) : sms;
  Curve curve{{{rate_of(op.family), bytes_at_peak_us(op.bytes, machine.hbm_GBps) * machine.sms / streaming_sms}}, {}};
  if (several_waves > 0) curve.always.push_back({Constant::memory_startup, overhead(machine, several_waves)});
  if (several_waves < 1) curve.always.push_back({Constant::small, overhead(machine, 1 - several_waves)});
  return curve;
}

}  // namespace

Evaluation evaluate(const Curve& curve, std::span<const double> constants) {
  Evaluation result;
  double slowest = curve.branches.empty() ? 0 : kUnknown;
  for (std::size_t i = 0; i < curve.branches.size(); ++i) {
    const double us = sum(curve.branches[i].terms, constants);
    if (std::isnan(us) || us <= slowest) continue;
    slowest = us;
    result.bound = curve.branches[i].bound;
    result.branch = i;
  }
  result.us = curve.fixed_us + sum(curve.always, constants) + slowest;
  if (!result.bound.empty()) result.deviation = curve.branches[result.branch].deviation * slowest / result.us;
  for (std::size_t i = 0; i < curve.alternatives.size(); ++i) {
    const Evaluation other = evaluate(curve.alternatives[i], constants);
    if (!(other.us < result.us)) continue;
    result = other;
    result.alternative = i + 1;
  }
  return result;
}

Curve compute_curve(const Operator& op, int sms, const MachineFacts& machine, TileSet tiles) {
  switch (row_of(op.family).kind) {
    case FamilyKind::gemm:
      return gemm_curve(op, sms, machine, tiles);
    case FamilyKind::attention:
      return attention_curve(op, sms, machine);
    case FamilyKind::routing:
      return {{{rate_of(op.family), overhead(machine, items_of(op))}}, {}};
    case FamilyKind::small:
      return {{{Constant::small, overhead(machine)}}, {}};
    case FamilyKind::memory_bound:
      return memory_curve(op, sms, machine);
    case FamilyKind::barrier:
    case FamilyKind::host_copy:
    case FamilyKind::collective:
    case FamilyKind::normal:
    case FamilyKind::low_latency:
      break;
  }
  moeline::check_failed("a compute family", __FILE__, __LINE__, name_of(op.family));
}

// Attention kernels.

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

// The all-to-all of DeepEP, nothing beside it. How it works: moe/all_to_all.cpp.

namespace {

constexpr const char* kCopies = "SMs";

bool between_nodes(const Operator& op, const MachineFacts& machine) { return op.traffic.ranks > machine.gpus_per_node; }

// Over the NIC: what leaves the node, and what stays in it if the library sends that out as well (February 2025).
std::vector<Term> nic_terms(const Operator& op, double own_node_bytes, Constant nic, Constant own_node,
                            const MachineFacts& machine) {
  return {{nic, bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine))},
          {own_node, bytes_at_peak_us(own_node_bytes, nic_rate_GBps(machine))}};
}

// What leaves the leaf, at the NIC's efficiency. Nothing leaves it to reach the own node, but from rail to rail.
void add_uplink(const Operator& op, double own_node_bytes, Constant nic, Constant own_node, const MachineFacts& machine,
                Curve& curve) {
  if (!uplinks_may_bind(op, machine)) return;
  const double cross_bytes = op.traffic.wire_bytes * cross_leaf_share(op, machine);
  const bool changes_rail = machine.rail_optimized > 0 && is_low_latency(op.family);
  curve.branches.push_back(
      {"uplink",
       {{nic, bytes_at_peak_us(cross_bytes, uplink_rate_GBps(machine))},
        {own_node, bytes_at_peak_us(changes_rail ? own_node_bytes : 0, uplink_rate_GBps(machine))}}});
}

// Start-up, and the time to fill the pipeline of hops: RDMA and NVLink between nodes, NVLink alone within one. Both
// grow with the record. A pipeline fills with the tokens of one chunk per SM.
double hops(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kChunk = 20;  // tokens; DeepEP's configurations use 4 to 32
  const double tokens = op.traffic.tokens / sms;
  return 1 + (between_nodes(op, machine) ? 2 : 1) * tokens / (tokens + kChunk);
}

Curve normal_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  // Between nodes combine adds up twice, within a node once: then its copies cost what those of dispatch do.
  const bool adds_on_the_way = op.family == Family::combine && between_nodes(op, machine);
  const Constant copy = adds_on_the_way ? Constant::combine_copy : Constant::dispatch_copy;
  const double own_node_bytes = traffic.rdma_bytes - traffic.wire_bytes;
  const double nvlink_us = bytes_at_peak_us(traffic.nvlink_bytes, nvlink_rate_GBps(machine));
  Curve curve{{{Constant::all_to_all_hop, traffic.record_bytes / 1e3 * hops(op, sms, machine)}},
              {{"NIC", nic_terms(op, own_node_bytes, Constant::normal_nic, Constant::normal_own_node, machine)},
               {"NVLink", {{Constant::normal_nvlink, nvlink_us}}},
               {kCopies, {{copy, traffic.copied_bytes / 1e6 / sms}}}}};
  add_uplink(op, own_node_bytes, Constant::normal_nic, Constant::normal_own_node, machine, curve);
  return curve;
}

// NIC and NVLink work at the same time, but the same warps issue the messages of both, so NVLink's keep the NIC waiting
// for a part of their time. With a share of messages that leave the node comes the same share of the latency between
// nodes: EP32 starts later than EP16, and both later than one node (H100's table at 2 tokens: 27, 22 and 15 us).
Curve low_latency_curve(const Operator& op, const MachineFacts& machine) {
  const Traffic& traffic = op.traffic;
  const double leaving = traffic.copied_bytes > 0 ? traffic.wire_bytes / traffic.copied_bytes : 0;
  const double dispatches = op.family == Family::low_latency_dispatch ? 1 : 0;
  const double nvlink_us = bytes_at_peak_us(traffic.nvlink_bytes, nvlink_rate_GBps(machine));
  Curve curve{
      {{Constant::low_latency_startup, 1}},
      {{"NIC", nic_terms(op, traffic.nvlink_bytes, Constant::low_latency_nic, Constant::low_latency_own_node, machine)},
       {"NVLink", {{Constant::low_latency_node_dispatch, dispatches}, {Constant::low_latency_nvlink, nvlink_us}}}}};
  add_uplink(op, traffic.nvlink_bytes, Constant::low_latency_nic, Constant::low_latency_own_node, machine, curve);
  for (Branch& branch : curve.branches) {
    if (branch.bound == "NVLink") continue;
    branch.terms.push_back({Constant::low_latency_reach, leaving});
    branch.terms.push_back({Constant::low_latency_waits, between_nodes(op, machine) ? nvlink_us : 0});
  }
  return curve;
}

}  // namespace

Curve transfer_curve(const Operator& op, int sms, const MachineFacts& machine) {
  return is_low_latency(op.family) ? low_latency_curve(op, machine) : normal_curve(op, sms, machine);
}

Curve hold_curve(const Operator& op) {
  return {{{Constant::low_latency_hold, 1}, {Constant::low_latency_hold_copy, op.traffic.copied_bytes / 1e6}}, {}};
}

double links_us(const Operator& op, const MachineFacts& machine) {
  const double uplink_bytes = uplinks_may_bind(op, machine) ? op.traffic.wire_bytes * cross_leaf_share(op, machine) : 0;
  return std::max({bytes_at_peak_us(op.traffic.wire_bytes, nic_rate_GBps(machine)),
                   bytes_at_peak_us(op.traffic.nvlink_bytes, nvlink_rate_GBps(machine)),
                   bytes_at_peak_us(uplink_bytes, uplink_rate_GBps(machine))});
}

Constant copy_stretch(Family family) {
  if (family == Family::dispatch) return Constant::dispatch_stretch;
  return family == Family::dispatch_cached ? Constant::dispatch_cached_stretch : Constant::combine_stretch;
}

double copying_us(const Curve& transfer, double stretch, const Constants& constants) {
  Curve copying{transfer.always, {}};
  for (const Branch& branch : transfer.branches) {
    if (branch.bound == kCopies) copying.branches.push_back(branch);
  }
  MOELINE_CHECK(copying.branches.size() == 1, "what SMs copy");
  for (Term& term : copying.branches[0].terms) term.feature *= stretch;
  return evaluate(copying, constants).us;
}

}  // namespace moeline

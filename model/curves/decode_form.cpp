// Attention over a KV cache, GQA and absorbed MLA: work items of a sequence and KV head, each split over the keys until
// the SMs are full.
//   start-up + so much for each block of an SM, for splitting and for merging + queries and outputs at HBM's pace
//   + max(compute on padded rows, the cache from HBM or, hot, from L2, the longest chain of one SM)
// A byte of the cache takes its time from L2, and what HBM adds where L2 does not have it: cold is never cheaper than
// hot. And the batched products around absorbed MLA, one for each head.
#include <algorithm>
#include <cmath>
#include <limits>

#include "curves/form.hpp"

namespace moeline {
namespace decode_curves {
namespace {

enum Part : std::size_t { start, block, split, merge, queries, cast, compute, l2, beyond_l2, chain_keys, chain_rows };

constexpr double kChainKeys = 256;  // of which one step of a chain's constant is
constexpr double kChainRows = 64;

// How a library's kernel is built.
struct Kernel {
  double rows = 64;   // of queries in a tile
  double keys = 128;  // the least that a part of a split takes
  double blocks_per_sm = 1;
  bool splits_all_keys = false;  // those outside of the window, too
  bool few_rows = false;         // a tile of 8 rows exists
  double most_parts = std::numeric_limits<double>::infinity();
  double l2_whole = 0.7, l2_none = 1.3;
  bool casts_cache = false;  // an FP8 cache is turned into BF16 first
};

struct Work {
  double rows, keys, cache_bytes, query_bytes, flops_per_key;  // of one work item; bytes of all
  double items = 0;                                            // sequences x KV heads
  double width = 1;                                            // of a key's chain, over 128 numbers
};

bool is_latent(const Operator& op) {
  return op.family == Family::mla_decode || op.family == Family::sparse_attention;  // over chosen keys
}

Work work_of(const Operator& op) {
  const AttentionShape& a = op.attention;
  const double cache = number_bytes(a.cache);
  const double seen = a.window > 0 ? std::min(a.kv_len, a.window + a.query_len - 1) : a.kv_len;
  Work work;
  work.rows = a.heads / a.kv_heads * a.query_len;
  work.keys = seen;
  work.items = a.batch * a.kv_heads;
  work.query_bytes = a.batch * a.heads * a.query_len * (a.qk_dim + a.v_dim) * 2;
  work.flops_per_key = 2 * (a.qk_dim + a.v_dim);
  work.cache_bytes = work.items * seen * (is_latent(op) ? a.qk_dim : a.qk_dim + a.v_dim) * cache;
  work.width = is_latent(op) ? 1 : a.qk_dim / 128;
  return work;
}

double padded(double rows, const Kernel& kernel) {
  if (kernel.few_rows && rows <= 8) return 8;
  if (rows <= 16) return 16;
  return rows <= 32 ? 32 : 64 * std::ceil(rows / 64);
}

Curve decode_curve(const Operator& op, int sms, const MachineFacts& machine, const Kernel& kernel) {
  const AttentionShape& a = op.attention;
  const Work work = work_of(op);
  const double row_tiles = std::ceil(work.rows / kernel.rows);
  const double items = work.items * row_tiles;
  const double most = std::min(std::floor(kernel.blocks_per_sm * sms / items),
                               std::ceil((kernel.splits_all_keys ? a.kv_len : work.keys) / kernel.keys));
  const double parts = std::clamp(most, 1.0, kernel.most_parts);
  const double used = std::min(parts, std::ceil(work.keys / kernel.keys));
  const double blocks = items * parts / sms;
  const double waves = std::ceil(blocks / kernel.blocks_per_sm);
  const double share = machine.sms / sms;
  const double pad = padded(work.rows, kernel);
  const bool fp8_math = is_latent(op) && a.cache != Precision::bf16;
  const double compute_us = flops_at_peak_us(work.items * pad * work.keys * work.flops_per_key,
                                             machine.tflops(fp8_math ? Precision::fp8 : Precision::bf16)) *
                            share;
  const double hot = l2_share(op, work.cache_bytes + work.query_bytes, machine, kernel.l2_whole, kernel.l2_none);
  const double cache_us = bytes_at_peak_us(work.cache_bytes, machine.hbm_GBps) * share;
  const bool casts = kernel.casts_cache && fp8_math && op.family == Family::mla_decode;  // not those that are chosen
  const double cast_us = casts ? bytes_at_peak_us(3 * work.items * work.keys * a.qk_dim, machine.hbm_GBps) * share : 0;
  return {{{part(start), overhead(machine)},
           {part(block), overhead(machine, blocks)},
           {part(split), parts > 1 ? overhead(machine) : 0},
           {part(merge), overhead(machine, std::log2(parts))},
           {part(queries), bytes_at_peak_us(work.query_bytes, machine.hbm_GBps) * share},
           {part(cast), cast_us}},
          {{"compute", {{part(compute), compute_us}}},
           {"memory", {{part(l2), cache_us}, {part(beyond_l2), cache_us * (1 - hot)}}},
           {"latency",
            {{part(chain_keys), overhead(machine, waves * work.keys / used / kChainKeys * work.width)},
             {part(chain_rows), overhead(machine, waves * pad / row_tiles / kChainRows)}}}}};
}

Form decode_form(const std::string& name, const Kernel& kernel) {
  return {name,
          {{"start_us"},
           {"block_us"},
           {"split_us"},
           {"merge_us"},
           {"queries_roofline_multiple"},
           {"cast_roofline_multiple"},
           {"compute_roofline_multiple"},
           {"l2_roofline_multiple"},
           {"beyond_l2_roofline_multiple"},
           {"chain_keys_us"},
           {"chain_rows_us"}},
          [kernel](const Operator& op, int sms, const MachineFacts& machine) {
            return decode_curve(op, sms, machine, kernel);
          },
          kernel.casts_cache ? std::vector<Constant>{part(cast)} : std::vector<Constant>{}};
}

enum ProductPart : std::size_t {
  product_start,
  product_tile,
  product_cast_l2,
  product_cast_beyond,
  product_compute,
  product_wave,
  product_l2,
  product_beyond
};

// One GEMM for each head, of weights 128x512 as absorbed MLA has them. `unpacked`: FP8 weights are turned into BF16
// beforehand.
Curve product_curve(const Operator& op, int sms, const MachineFacts& machine, bool unpacked) {
  constexpr double kTile = 128, kWhole = 0.6, kNone = 1;
  const double rows = op.m / op.groups;
  const bool fp8 = number_bytes(multiplied_in(precision_of(op))) == 1;
  const bool casts = fp8 && !unpacked;
  const double bytes_per_number = casts ? 1 : 2;
  const double height = rows <= 64 ? 64 : kTile * std::ceil(rows / kTile);
  const double waves = std::max(1.0, op.groups * std::ceil(rows / kTile) * std::ceil(op.n / kTile) / sms);
  const double bytes = op.groups * (op.n * op.k * bytes_per_number + rows * (op.k * bytes_per_number + 2 * op.n));
  const double cast_bytes = casts ? 3 * op.m * op.k : 0;
  const double hot = l2_share(op, bytes + cast_bytes, machine, kWhole, kNone);
  const double share = machine.sms / sms;
  const double peak = machine.tflops(casts ? Precision::fp8 : Precision::bf16);
  const double us = bytes_at_peak_us(bytes, machine.hbm_GBps) * share;
  const double cast_us = bytes_at_peak_us(cast_bytes, machine.hbm_GBps) * share;
  return {{{part(product_start), overhead(machine)},
           {part(product_tile), overhead(machine, waves)},
           {part(product_cast_l2), cast_us},
           {part(product_cast_beyond), cast_us * (1 - hot)}},
          {{"compute",
            {{part(product_compute), flops_at_peak_us(2 * op.groups * height * op.n * op.k, peak) * share},
             {part(product_wave), flops_at_peak_us(waves * machine.sms * 2 * kTile * kTile * op.k, peak)}}},
           {"memory", {{part(product_l2), us}, {part(product_beyond), us * (1 - hot)}}}}};
}

Form product_form(const std::string& name, bool unpacked) {
  return {name,
          {{"start_us"},
           {"tile_us"},
           {"cast_l2_roofline_multiple"},
           {"cast_beyond_l2_roofline_multiple"},
           {"compute_roofline_multiple"},
           {"wave_roofline_multiple"},
           {"l2_roofline_multiple"},
           {"beyond_l2_roofline_multiple"}},
          [unpacked](const Operator& op, int sms, const MachineFacts& machine) {
            return product_curve(op, sms, machine, unpacked);
          }};
}

}  // namespace
}  // namespace decode_curves

// Chosen on the tables of data/aic: FlashAttention fills the SMs with parts of 128 keys; TensorRT-LLM's kernels of
// Hopper launch up to 8 blocks per SM, by all keys even where a window hides most of them; those of Blackwell take few
// long parts.
std::vector<Form> decode_forms() {
  using namespace decode_curves;
  constexpr double kBlackwellWhole = 0.6, kBlackwellNone = 1.05;
  return {
      decode_form("flash_decode_sm80", {.rows = 128}),
      decode_form("flash_decode", {.rows = 128, .blocks_per_sm = 2}),
      decode_form("trtllm_gen_decode",
                  {.rows = 128, .keys = 1024, .l2_whole = kBlackwellWhole, .l2_none = kBlackwellNone}),
      decode_form("xqa_sm80", {.keys = 128, .blocks_per_sm = 8, .splits_all_keys = true}),
      decode_form("xqa", {.keys = 256, .blocks_per_sm = 8, .splits_all_keys = true}),
      decode_form("xqa_fp8", {.keys = 128, .blocks_per_sm = 8, .splits_all_keys = true, .few_rows = true}),
      decode_form("mla_decode", {.keys = 128}),
      decode_form("flash_mla", {.keys = 128}),
      decode_form("mla_decode_cast", {.keys = 128, .casts_cache = true}),
      decode_form("trtllm_gen_mla", {.keys = 512, .l2_whole = kBlackwellWhole, .l2_none = kBlackwellNone}),
      product_form("batched_gemm", false),
      product_form("batched_gemm_unpacked", true),
  };
}

}  // namespace moeline

// Attention of a prefill: tiles of query rows, each of which goes through the keys that its rows see, on SMs that take
// the next tile when they are done.
//   start-up + queries and outputs, keys and values at HBM's pace + so much for each tile of an SM, more where a window
//   masks a second edge, + a merge where keys are split + key blocks of the busiest SM, each by its products
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "curves/form.hpp"

namespace moeline {
namespace prefill_curves {
namespace {

enum Part : std::size_t {
  start,
  narrow_start,
  queries,
  keys,
  tile,
  masked_tile,
  merge,
  block_64,
  block_128,
  block_256
};

// How a library's kernel is built.
struct Kernel {
  double rows, keys;          // of a tile
  bool packs;                 // query heads of a KV head share its tiles
  bool longest_first;         // else head by head, from the first query on
  bool splits;                // the keys of few tiles
  double extra_blocks;        // of a tile's prologue and epilogue, in key blocks
  bool halves = false;        // its tile where few rows would leave half of it empty
  double narrow_rows = 0;     // of a tile, head dimensions of at most 64
  double wide_rows = 0;       // and of 256 on
  double wide_keys_bf16 = 0;  // of a tile of BF16 there
};

struct Tile {
  double rows, keys;
};

double mean_dim(const AttentionShape& a) { return (a.qk_dim + a.v_dim) / 2; }

Tile tile_of(const Kernel& kernel, const AttentionShape& a) {
  Tile tile{kernel.rows, kernel.keys};
  if (a.qk_dim <= 64 && kernel.narrow_rows > 0) tile.rows = kernel.narrow_rows;
  if (a.qk_dim >= 256 && kernel.wide_rows > 0) tile.rows = kernel.wide_rows;
  if (a.qk_dim >= 256 && kernel.wide_keys_bf16 > 0 && a.math == Precision::bf16) tile.keys = kernel.wide_keys_bf16;
  const double packed = kernel.packs ? a.heads / a.kv_heads : 1;
  if (kernel.halves && packed * a.query_len <= tile.rows / 2) tile.rows /= 2;
  return tile;
}

// Key blocks of each tile of one copy, its first rows first. Blocks that are masked in part are computed whole.
std::vector<double> key_blocks(const Kernel& kernel, const Tile& tile, const AttentionShape& a) {
  const double packed = kernel.packs ? a.heads / a.kv_heads : 1;
  const double rows = packed * a.query_len, before = a.kv_len - a.query_len;
  std::vector<double> blocks;
  for (double first = 0; first < rows; first += tile.rows) {
    const double first_query = std::floor(first / packed);
    const double last_query = std::floor((std::min(first + tile.rows, rows) - 1) / packed);
    const double low = a.window > 0 ? std::max(0.0, first_query + before - a.window + 1) : 0;
    blocks.push_back(std::ceil((last_query + 1 + before) / tile.keys) - std::floor(low / tile.keys));
  }
  return blocks;
}

// Into how many parts the keys of a tile are split, where too few tiles would leave SMs idle.
double splits_of(double tiles, double longest, int sms) {
  constexpr double kEnough = 0.8, kFewBlocks = 4, kSpare = 1.1;
  if (tiles >= kEnough * sms || longest <= kFewBlocks) return 1;
  const double blocks_each = std::max(1.0, std::ceil(kSpare * tiles * longest / sms));
  return std::ceil(longest / blocks_each);
}

struct Schedule {
  double tiles = 0;  // in all
  double span = 0;   // key blocks on the busiest SM
  double splits = 1;
};

// The next tile goes to the SM that is free first.
double walk(const std::vector<double>& blocks, double copies, bool longest_first, int sms) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at(
      std::greater<>(), std::vector<double>(static_cast<std::size_t>(sms)));
  double last = 0;
  const auto place = [&](double length) {
    const double end = free_at.top() + length;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  };
  if (longest_first) {
    for (auto length = blocks.rbegin(); length != blocks.rend(); ++length) {
      for (double copy = 0; copy < copies; ++copy) place(*length);
    }
  } else {
    for (double copy = 0; copy < copies; ++copy) std::for_each(blocks.begin(), blocks.end(), place);
  }
  return last;
}

// Of a fractional number of copies, as of prompts that a step has in part: between those of the whole numbers beside
// it.
double span_of(const std::vector<double>& blocks, double copies, bool longest_first, int sms) {
  const double whole = std::floor(copies), part = copies - whole;
  const double span = walk(blocks, whole, longest_first, sms);
  return part > 0 ? span + part * (walk(blocks, whole + 1, longest_first, sms) - span) : span;
}

Schedule schedule_of(const Kernel& kernel, const Tile& tile, const AttentionShape& a, int sms) {
  constexpr double kWalked = 12;  // tiles of an SM from which on the mean tells as much as the walk
  constexpr double kTail = 0.5;   // of the longest tile, that the last SM works alone
  std::vector<double> blocks = key_blocks(kernel, tile, a);
  const double copies = a.batch * (kernel.packs ? a.kv_heads : a.heads);
  Schedule schedule{copies * static_cast<double>(blocks.size())};
  double longest = *std::max_element(blocks.begin(), blocks.end());
  if (kernel.splits) schedule.splits = splits_of(schedule.tiles, longest, sms);
  for (double& each : blocks) each = std::ceil(each / schedule.splits) + kernel.extra_blocks;
  longest = std::ceil(longest / schedule.splits) + kernel.extra_blocks;
  schedule.tiles *= schedule.splits;
  const double all = std::accumulate(blocks.begin(), blocks.end(), 0.0) * copies * schedule.splits;
  if (schedule.tiles <= sms) {
    schedule.span = longest;
  } else if (schedule.tiles <= kWalked * sms) {
    schedule.span = span_of(blocks, copies * schedule.splits, kernel.longest_first, sms);
  } else {
    schedule.span = all / sms + (kernel.longest_first ? 0 : kTail * longest);
  }
  return schedule;
}

// Time of a block at the peak by its head dimension: between what 64, 128 and 256 take, and beyond in proportion.
std::vector<Term> block_terms(std::size_t of_64, double us_per_dim, double dim) {
  const double from_64 = std::clamp((dim - 64) / 64, 0.0, 1.0), from_128 = std::clamp((dim - 128) / 128, 0.0, 1.0);
  return {{part(of_64), us_per_dim * 64 * (1 - from_64)},
          {part(of_64 + 1), us_per_dim * 128 * (dim <= 128 ? from_64 : 1 - from_128)},
          {part(of_64 + 2), us_per_dim * 256 * (dim > 256 ? dim / 256 : from_128)}};
}

Curve prefill_curve(const Operator& op, int sms, const MachineFacts& machine, const Kernel& kernel) {
  const AttentionShape& a = op.attention;
  const Tile tile_size = tile_of(kernel, a);
  const Schedule schedule = schedule_of(kernel, tile_size, a, sms);
  const double share = machine.sms / sms;
  const double bytes = number_bytes(multiplied_in(a.math));
  const auto stream_us = [&](double numbers) {
    return bytes_at_peak_us(a.batch * a.query_len * numbers, machine.hbm_GBps) * share;
  };
  const double tiles_each = std::max(1.0, schedule.tiles / sms);
  const bool windowed = a.window > 0 && a.window < a.kv_len;
  const double block_us =
      flops_at_peak_us(4 * tile_size.rows * tile_size.keys, machine.tflops(a.math) / machine.sms) * schedule.span;
  Curve curve{{{part(start), overhead(machine)},
               {part(narrow_start), a.qk_dim <= 64 ? overhead(machine) : 0},
               {part(queries), stream_us(a.heads * (a.qk_dim * bytes + a.v_dim * 2))},
               {part(keys), stream_us(a.kv_heads * (a.qk_dim + a.v_dim) * bytes)},
               {part(tile), overhead(machine, tiles_each)},
               {part(masked_tile), windowed ? overhead(machine, tiles_each) : 0},
               {part(merge), schedule.splits > 1 ? overhead(machine) : 0}},
              {{"compute", block_terms(block_64, block_us, mean_dim(a))}}};
  if (schedule.splits > 1) {  // a prompt a little longer, whose tiles are enough, would else be quicker
    Kernel whole = kernel;
    whole.splits = false;
    curve.alternatives = {prefill_curve(op, sms, machine, whole)};
  }
  return curve;
}

// cuDNN's kernels of training: tiles and their blocks of keys alone, forward or backward, where five products of a pair
// take the place of two.
enum CudnnPart : std::size_t { cudnn_start, cudnn_tile, cudnn_64, cudnn_128, cudnn_256 };

Curve cudnn_curve(const Operator& op, int sms, const MachineFacts& machine, bool backward) {
  const AttentionShape& a = op.attention;
  const Tile tile{128, 128};
  const Schedule schedule = schedule_of({.rows = tile.rows,
                                         .keys = tile.keys,
                                         .packs = false,
                                         .longest_first = false,
                                         .splits = false,
                                         .extra_blocks = 1},
                                        tile, a, sms);
  const double products = backward ? (3 * a.qk_dim + 2 * a.v_dim) / (a.qk_dim + a.v_dim) : 1;
  const double flops = 4 * tile.rows * tile.keys * products;
  const double block_us = flops_at_peak_us(flops, machine.tflops(a.math) / machine.sms) * schedule.span;
  return {{{part(cudnn_start), overhead(machine)},
           {part(cudnn_tile), overhead(machine, std::max(1.0, schedule.tiles / sms))}},
          {{"compute", block_terms(cudnn_64, block_us, mean_dim(a))}}};
}

Form cudnn_form(const std::string& name, bool backward) {
  return {name,
          {{"start_us"},
           {"tile_us"},
           {"block_64_roofline_multiple"},
           {"block_128_roofline_multiple"},
           {"block_256_roofline_multiple"}},
          [backward](const Operator& op, int sms, const MachineFacts& machine) {
            return cudnn_curve(op, sms, machine, backward);
          }};
}

Form prefill_form(const std::string& name, const Kernel& kernel) {
  return {name,
          {{"start_us"},
           {"narrow_start_us"},
           {"queries_roofline_multiple"},
           {"keys_roofline_multiple"},
           {"tile_us"},
           {"masked_tile_us"},
           {"merge_us"},
           {"block_64_roofline_multiple"},
           {"block_128_roofline_multiple"},
           {"block_256_roofline_multiple"}},
          [kernel](const Operator& op, int sms, const MachineFacts& machine) {
            return prefill_curve(op, sms, machine, kernel);
          }};
}

}  // namespace
}  // namespace prefill_curves

// Chosen on the tables of data/aic, whose errors with the other choices stand in calib/tables/README.md.
std::vector<Form> prefill_forms() {
  using namespace prefill_curves;
  return {
      prefill_form("flash_attention_2", {128, 64, true, false, true, 0}),
      prefill_form("trtllm_fmha_sm80", {128, 64, false, false, false, 0}),
      prefill_form("flash_attention_3", {.rows = 128,
                                         .keys = 128,
                                         .packs = true,
                                         .longest_first = true,
                                         .splits = true,
                                         .extra_blocks = 1,
                                         .narrow_rows = 192,
                                         .wide_keys_bf16 = 80}),
      prefill_form("absorbed_prefill", {64, 64, true, true, true, 1}),
      prefill_form("trtllm_fmha_sm90", {128, 128, false, false, false, 1, true}),
      prefill_form("trtllm_gen_fmha", {.rows = 256,
                                       .keys = 128,
                                       .packs = false,
                                       .longest_first = false,
                                       .splits = false,
                                       .extra_blocks = 1,
                                       .halves = true,
                                       .wide_rows = 128}),
  };
}

std::vector<Form> cudnn_forms() {
  using namespace prefill_curves;
  return {cudnn_form("cudnn_forward", false), cudnn_form("cudnn_backward", true)};
}

}  // namespace moeline

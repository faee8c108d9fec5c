// Attention to chosen keys, kernel by kernel as SGLang runs DeepSeek-V3.2, and DeepSeek-V4's hyper-connections.
//
// Scores of an indexer (DeepGEMM): tiles of queries, as many as fill 128 rows with their heads, walk over blocks of 256
// keys; the SMs take them in turn. A kernel of decode splits keys evenly over all SMs instead.
//   start-up + so much for each tile of the busiest SM + its key blocks at the peak, slower where power binds
// Choice of the best (radix select): a block of threads for each query, which reads its scores twice. Queries that see
// no more keys than they choose list them all.
//   start-up + max(rows that list, rows that choose, their scores from L2 and beyond, all of an SM; the longest row)
// Core of prompts (FlashMLA, sparse): a block for each query and 64 heads, which gathers the chosen keys. On Blackwell
// pairs of SMs take 128 heads.
//   start-up + waves of blocks at the peak, slower where power binds + keys that are not in L2
// Hyper-connections: so much for each row of an SM, or bytes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "curves/form.hpp"

namespace moeline {
namespace sparse_curves {
namespace {

constexpr double kL2Whole = 0.5, kL2None = 1;

// Keys that the first and the last query of a sequence see; they grow evenly between.
struct Seen {
  double first, last;
};

Seen seen_of(const AttentionShape& a, double pairs) {
  const double mean = pairs / (a.batch * a.query_len);
  return {std::max(0.0, 2 * mean - a.kv_len), std::max(mean, a.kv_len)};
}

enum ScoresPart : std::size_t { scores_start, scores_tile, scores_compute, scores_sustained };

constexpr double kScoredRows = 128, kScoredKeys = 256;
constexpr double kFewestOfPrompt = 16;  // new tokens of a sequence; fewer are a token in decode and its drafts

struct Walk {
  double tiles = 0, blocks = 0;  // of the busiest SM
  double busy = 1;               // share of the SMs that have any
};

// Tile t is SM t's, modulo their number: where an SM has many, each has the mean and the last one is long.
Walk walk(const std::vector<double>& blocks, double sequences, int sms) {
  constexpr double kMany = 12;
  const double tiles = static_cast<double>(blocks.size()) * sequences, each = tiles / sms;
  if (each > kMany) {
    const double all = std::accumulate(blocks.begin(), blocks.end(), 0.0) * sequences;
    return {std::ceil(each), all / sms + (std::ceil(each) - each) * *std::max_element(blocks.begin(), blocks.end())};
  }
  std::vector<double> of_sm(static_cast<std::size_t>(sms));
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(tiles); ++tile) {
    of_sm[tile % of_sm.size()] += blocks[tile % blocks.size()];
  }
  return {std::ceil(each), *std::max_element(of_sm.begin(), of_sm.end()), std::min(1.0, each)};
}

Walk walk_over_prompts(const Operator& op, int sms) {
  const AttentionShape& a = op.attention;
  const Seen seen = seen_of(a, op.flops / (2 * a.heads * a.qk_dim));
  const double queries = std::max(1.0, std::floor(kScoredRows / a.heads));
  std::vector<double> blocks;
  const double rows = std::max(1.0, a.heads / kScoredRows);
  for (double end = queries; end < a.query_len + queries; end += queries) {
    const double share = (std::min(end, a.query_len) - 1) / (a.query_len - 1);
    const double keys = seen.first + share * (seen.last - seen.first);
    blocks.push_back(rows * std::max(1.0, std::ceil(keys / kScoredKeys)));
  }
  return walk(blocks, std::max(1.0, std::round(a.batch)), sms);
}

// Blocks are those of as many rows as a tile of prompts has.
Walk walk_over_caches(const Operator& op, int sms) {
  const AttentionShape& a = op.attention;
  const double blocks = a.batch * std::ceil(a.kv_len / kScoredKeys), rows = a.query_len * a.heads;
  return {std::max(1.0, a.batch / sms), std::max(1.0, blocks / sms) * rows / kScoredRows};
}

Curve scores_curve(const Operator& op, int sms, const MachineFacts& machine) {
  const AttentionShape& a = op.attention;
  const Walk busiest = a.query_len < kFewestOfPrompt ? walk_over_caches(op, sms) : walk_over_prompts(op, sms);
  const double compute_us = flops_at_peak_us(2 * kScoredRows * kScoredKeys * a.qk_dim * busiest.blocks,
                                             machine.tflops(precision_of(op)) / machine.sms);
  return {{{part(scores_start), overhead(machine)},
           {part(scores_tile), overhead(machine, busiest.tiles)},
           {part(scores_compute), compute_us},
           {part(scores_sustained), busiest.busy * by_power(compute_us, machine)}},
          {}};
}

enum ChoicePart : std::size_t { choice_start, listed_row, chosen_row, l2, beyond_l2, longest_l2, longest_beyond_l2 };

struct Rows {
  double listed, chosen;  // of all sequences
  double keys;            // of a row that chooses, on average
};

Rows rows_of(const Operator& op) {
  const AttentionShape& a = op.attention;
  const Seen seen = seen_of(a, op.items);
  const double step = (seen.last - seen.first) / std::max(1.0, a.query_len - 1);
  const double few = seen.last <= op.n ? a.query_len : step > 0 ? (op.n - seen.first) / step + 1 : 0;
  const double listed = std::clamp(std::floor(few), 0.0, a.query_len);
  return {a.batch * listed, a.batch * (a.query_len - listed), (std::max(seen.first, op.n) + seen.last) / 2};
}

Curve choice_curve(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kScore = 4, kWhole = 0.5, kNone = 1.3;  // L2 keeps a part of what streams through it
  const Rows rows = rows_of(op);
  const double share = machine.sms / sms, scores = rows.chosen * rows.keys * kScore;
  const double hot = l2_share(op, scores + op.m * op.n * kScore, machine, kWhole, kNone);
  const double us = bytes_at_peak_us(scores, machine.hbm_GBps) * share;
  const double longest_us =
      rows.chosen > 0 ? bytes_at_peak_us(op.attention.kv_len * kScore, machine.hbm_GBps) * machine.sms : 0;
  return {{{part(choice_start), overhead(machine)}},
          {{"SMs",
            {{part(listed_row), overhead(machine, rows.listed / sms)},
             {part(chosen_row), overhead(machine, rows.chosen / sms)},
             {part(l2), us},
             {part(beyond_l2), us * (1 - hot)}}},
           {"latency", {{part(longest_l2), longest_us}, {part(longest_beyond_l2), longest_us * (1 - hot)}}}}};
}

enum CorePart : std::size_t { core_start, core_compute, core_sustained, core_beyond_l2 };

struct Core {
  double heads;      // of a block
  double block_sms;  // that a block has
};

Curve core_curve(const Operator& op, int sms, const MachineFacts& machine, const Core& core) {
  constexpr double kKeys = 64;
  const AttentionShape& a = op.attention;
  const double at_once = std::max(1.0, std::floor(sms / core.block_sms));
  const double waves = std::ceil(a.batch * a.query_len * std::ceil(a.heads / core.heads) / at_once);
  const double flops = 2 * core.heads * kKeys * std::ceil(a.kv_len / kKeys) * (a.qk_dim + a.v_dim);
  const double compute_us =
      flops_at_peak_us(waves * flops, machine.tflops(Precision::bf16) / machine.sms * core.block_sms);
  const double hot = l2_share(op, op.bytes, machine, kL2Whole, kL2None);
  const double us = bytes_at_peak_us(op.bytes, machine.hbm_GBps) * machine.sms / sms;
  return {{{part(core_start), overhead(machine)},
           {part(core_compute), compute_us},
           {part(core_sustained), by_power(compute_us, machine)},
           {part(core_beyond_l2), us * (1 - hot)}},
          {}};
}

Form core_form(const std::string& name, const Core& core) {
  return {
      name,
      {{"start_us"}, {"compute_roofline_multiple"}, {"sustained_multiple"}, {"beyond_l2_roofline_multiple"}},
      [core](const Operator& op, int sms, const MachineFacts& machine) { return core_curve(op, sms, machine, core); }};
}

enum StreamsPart : std::size_t { streams_start, streams_row, streams_l2, streams_beyond_l2 };

Curve streams_curve(const Operator& op, int sms, const MachineFacts& machine) {
  constexpr double kWidth = 4096;  // of which a row's constant is
  const double us = bytes_at_peak_us(op.bytes, machine.hbm_GBps) * machine.sms / sms;
  const double hot = l2_share(op, op.bytes, machine, kL2Whole, kL2None);
  return {{{part(streams_start), overhead(machine)}},
          {{"latency", {{part(streams_row), overhead(machine, std::ceil(op.m / sms) * op.k / kWidth)}}},
           {"memory", {{part(streams_l2), us}, {part(streams_beyond_l2), us * (1 - hot)}}}}};
}

}  // namespace
}  // namespace sparse_curves

// Chosen on the tables of H200, and seen to fit those of B200.
std::vector<Form> sparse_forms() {
  using namespace sparse_curves;
  return {
      {"indexer_scores",
       {{"start_us"}, {"tile_us"}, {"compute_roofline_multiple"}, {"sustained_multiple"}},
       scores_curve},
      {"indexer_choice",
       {{"start_us"},
        {"listed_row_us"},
        {"chosen_row_us"},
        {"l2_roofline_multiple"},
        {"beyond_l2_roofline_multiple"},
        {"longest_l2_roofline_multiple"},
        {"longest_beyond_l2_roofline_multiple"}},
       choice_curve},
      core_form("sparse_prefill", {.heads = 64, .block_sms = 1}),
      core_form("sparse_prefill_sm100", {.heads = 128, .block_sms = 2}),
      {"hyper_connection",
       {{"start_us"}, {"row_us"}, {"l2_roofline_multiple"}, {"beyond_l2_roofline_multiple"}},
       streams_curve},
  };
}

}  // namespace moeline

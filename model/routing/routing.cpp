#include "routing/routing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/memo.hpp"
#include "routing/drawn_loads.hpp"
#include "routing/gating.hpp"

namespace moeline {
namespace {

std::size_t distinct(std::vector<std::size_t>& values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

// Expert e owns its share of the slots, [e, e + 1) x slots / experts; ends may lie inside a slot, which then serves
// two experts' tokens in proportion: every slot gets the same, and groups stay together.
std::size_t slot_of(std::size_t expert, int slots, int experts, double draw) {
  return static_cast<std::size_t>((static_cast<double>(expert) + draw) * slots / experts);
}

Spread drawn_spread(const Gating& gating, int ep, int gpus_per_node, unsigned seed, int slots) {
  constexpr int kTokens = 8192;
  TokenStream tokens(gating, seed);
  std::vector<std::size_t> ranks;
  std::vector<std::size_t> nodes;
  const auto slots_per_rank = static_cast<std::size_t>(slots / ep);
  std::size_t node_count = 0;
  std::size_t rank_count = 0;
  for (int token = 0; token < kTokens; ++token) {
    ranks.clear();
    nodes.clear();
    for (const std::size_t expert : tokens.next()) {
      const bool copies = slots > gating.experts;
      const std::size_t slot = copies ? slot_of(expert, slots, gating.experts, tokens.uniform()) : expert;
      ranks.push_back(slot / slots_per_rank);
      nodes.push_back(ranks.back() / static_cast<std::size_t>(gpus_per_node));
    }
    rank_count += distinct(ranks);
    node_count += distinct(nodes);
  }
  return {static_cast<double>(node_count) / kTokens, static_cast<double>(rank_count) / kTokens};
}

// What a rank's experts get together where some are popular, and how far one is from their mean.
struct SkewedRows {
  double hit = 0, padded = 0, deviation = 0;
};

SkewedRows skewed_rows(const RandomChoice& choice) {
  const double mean = choice.tokens * choice.of_token.top_k / choice.of_token.slots;
  SkewedRows sum;
  double squares = 0;
  for (const RowsOfExpert& rows : rows_of_rank(choice)) {
    sum.hit += hit(rows.mean);
    sum.padded += expected_padded(rows.mean, rows.deviation, kRowPadding);
    squares += rows.deviation * rows.deviation + (rows.mean - mean) * (rows.mean - mean);
  }
  sum.deviation = std::sqrt(squares / choice.of_token.local());
  return sum;
}

SkewedRows known_skewed_rows(const RandomChoice& choice) {
  constexpr std::size_t kManyLoads = 4096;
  static Memo<RandomChoice, SkewedRows> known(kManyLoads);
  return *known.get(choice, [&] { return skewed_rows(choice); });
}

// `valid` rows spread over the local experts, as evenly as the load's deviation lets them.
ExpertLoad with_rows(ExpertLoad load, double valid, double local_experts) {
  const double each = valid / local_experts;
  load.valid = valid;
  if (load.choice.of_token.skew > 0) {
    const SkewedRows rows = known_skewed_rows(load.choice);
    load.hit = rows.hit;
    load.rows = rows.padded;
    load.rows_deviation = rows.deviation;
    return load;
  }
  load.hit = local_experts * hit(each);
  const double experts = load.rows_deviation > 0 ? local_experts : load.hit;  // the deviation knows those that get none
  load.rows = experts * expected_padded(each, load.rows_deviation, kRowPadding);
  return load;
}

}  // namespace

double whole_rows(double rows) { return expected_padded(rows, 0, 1); }

double padded(double rows) { return expected_padded(rows, 0, kRowPadding); }

double hit(double rows) { return 1 - std::exp(-rows); }

double expected_places(int places, int experts, int top_k) {
  const double own = static_cast<double>(experts) / places;
  double missed = 1;  // that none of them lies in a place
  for (int i = 0; i < top_k; ++i) missed *= std::max(0.0, experts - own - i) / (experts - i);
  return places * (1 - missed);
}

Spread expected_spread(const Architecture& model, int ep, int gpus_per_node, unsigned seed, int redundant_experts) {
  const int slots = model.n_routed_experts + redundant_experts;
  MOELINE_CHECK(ep > 0 && slots % ep == 0, std::to_string(ep));
  const Gating gating = gating_of(model);
  const int nodes = std::max(1, ep / gpus_per_node);
  if (gating.groups == 1 && redundant_experts == 0) {
    return {expected_places(nodes, gating.experts, gating.top_k), expected_places(ep, gating.experts, gating.top_k)};
  }
  static std::mutex mutex;
  static std::map<std::array<int, 8>, Spread> known;
  const std::array<int, 8> key = {gating.experts, gating.top_k,           gating.groups,    gating.kept_groups, ep,
                                  gpus_per_node,  static_cast<int>(seed), redundant_experts};
  const std::scoped_lock lock(mutex);
  const auto [found, is_new] = known.try_emplace(key);
  if (is_new) found->second = drawn_spread(gating, ep, gpus_per_node, seed, slots);
  return found->second;
}

ExpertLoad exact_load(const Architecture& model, double tokens_per_rank, int ep, const Spread& spread,
                      int redundant_experts) {
  const int slots = model.n_routed_experts + redundant_experts;
  const double per_slot = tokens_per_rank * ep * model.num_experts_per_tok / slots;
  const int local_slots = slots / ep;
  return with_rows({.received = tokens_per_rank * spread.ranks_per_token}, local_slots * per_slot, local_slots);
}

ExpertLoad balanced_load(const Architecture& model, double tokens_per_rank, int ep, const Spread& spread,
                         int redundant_experts, double skew) {
  ExpertLoad load = exact_load(model, tokens_per_rank, ep, spread, redundant_experts);
  const int slots = model.n_routed_experts + redundant_experts;
  const int local_slots = slots / ep;
  load.choice = {tokens_per_rank * ep, {model.num_experts_per_tok, slots, ep, skew}};
  load.expected_rows = load.valid / local_slots;
  load.rows_deviation = rows_deviation(load.expected_rows, static_cast<double>(model.num_experts_per_tok) / slots);
  return with_rows(load, load.valid, local_slots);
}

ExpertLoad scaled(const ExpertLoad& load, double factor, double local_experts) {
  ExpertLoad more = load;
  more.received *= factor;
  more.rows_deviation *= std::sqrt(factor);
  more.choice.tokens *= factor;
  return with_rows(more, load.valid * factor, local_experts);
}

ExpertLoad load_of_experts(const ExpertLoad& load, int local_experts, const Piece& piece) {
  const int first = piece.first_of(local_experts), count = piece.size_of(local_experts);
  double share = static_cast<double>(count) / local_experts;
  ExpertLoad part = load;
  if (!load.group_rows.empty()) {
    part.group_rows.assign(load.group_rows.begin() + first, load.group_rows.begin() + first + count);
    const auto rows = [](const std::vector<int>& groups) { return std::accumulate(groups.begin(), groups.end(), 0.0); };
    const double all = rows(load.group_rows);
    part.hit =
        static_cast<double>(std::count_if(part.group_rows.begin(), part.group_rows.end(), [](int n) { return n > 0; }));
    if (all > 0) share = rows(part.group_rows) / all;
  } else {
    part.hit *= share;
  }
  part.rows *= share;
  part.valid *= share;
  part.received *= share;
  return part;
}

ExpertLoad given_load(const Architecture& model, double padded_rows, int ep, const Spread& spread) {
  const double padding = model.n_routed_experts / static_cast<double>(ep) * (kRowPadding / 2.0);
  const double rows = std::max(padded_rows - padding, padded_rows / 2);
  return {.rows = padded_rows,
          .received = rows * spread.ranks_per_token / model.num_experts_per_tok,
          .valid = rows,
          .hit = static_cast<double>(model.n_routed_experts) / ep};
}

}  // namespace moeline

#include "moe/routing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/error.hpp"

namespace moeline {
namespace {

// Experts one token chooses, for given scores.
class Gate {
 public:
  explicit Gate(const Architecture& model)
      : top_k_(static_cast<std::size_t>(model.num_experts_per_tok)),
        kept_groups_(static_cast<std::size_t>(model.topk_group)),
        group_size_(static_cast<std::size_t>(model.n_routed_experts / model.n_group)),
        groups_(static_cast<std::size_t>(model.n_group)) {}

  const std::vector<std::size_t>& choose(const std::vector<double>& scores) {
    const auto best_first = [](const std::vector<double>& by) {
      return [&by](std::size_t a, std::size_t b) { return by[a] != by[b] ? by[a] > by[b] : a < b; };
    };
    group_scores_.assign(groups_.size(), 0);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      groups_[group] = group;
      group_scores_[group] = two_best(scores, group * group_size_);
    }
    const auto kept = static_cast<std::ptrdiff_t>(kept_groups_);
    std::partial_sort(groups_.begin(), groups_.begin() + kept, groups_.end(), best_first(group_scores_));
    experts_.clear();
    for (std::size_t i = 0; i < kept_groups_; ++i) {
      for (std::size_t j = 0; j < group_size_; ++j) experts_.push_back(groups_[i] * group_size_ + j);
    }
    const auto chosen = static_cast<std::ptrdiff_t>(top_k_);
    std::partial_sort(experts_.begin(), experts_.begin() + chosen, experts_.end(), best_first(scores));
    experts_.resize(top_k_);
    return experts_;
  }

 private:
  [[nodiscard]] double two_best(const std::vector<double>& scores, std::size_t first) const {
    double best = 0;
    double second = 0;
    for (std::size_t i = first; i < first + group_size_; ++i) {
      second = std::max(second, std::min(best, scores[i]));
      best = std::max(best, scores[i]);
    }
    return best + second;
  }

  std::size_t top_k_, kept_groups_, group_size_;
  std::vector<std::size_t> groups_, experts_;
  std::vector<double> group_scores_;
};

std::size_t distinct(std::vector<std::size_t>& values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

// Expert e owns its share of the slots, [e, e + 1) x slots / experts; ends may lie inside a slot, which then serves
// two experts' tokens in proportion: every slot gets the same, and groups stay together.
std::size_t slot_of(std::size_t expert, int slots, const Architecture& model, double draw) {
  return static_cast<std::size_t>((static_cast<double>(expert) + draw) * slots / model.n_routed_experts);
}

double round_up(double rows) { return std::ceil(rows / kRowPadding) * kRowPadding; }

}  // namespace

Spread expected_spread(const Architecture& model, int ep, int gpus_per_node, unsigned seed, int redundant_experts) {
  const int slots = model.n_routed_experts + redundant_experts;
  MOELINE_CHECK(ep > 0 && slots % ep == 0, std::to_string(ep));
  constexpr int kTokens = 8192;
  std::mt19937_64 random(seed);
  Gate gate(model);
  std::vector<double> scores(static_cast<std::size_t>(model.n_routed_experts));
  std::vector<std::size_t> ranks;
  std::vector<std::size_t> nodes;
  const auto slots_per_rank = static_cast<std::size_t>(slots / ep);
  std::size_t node_count = 0;
  std::size_t rank_count = 0;
  for (int token = 0; token < kTokens; ++token) {
    for (double& score : scores) score = uniform(random);
    ranks.clear();
    nodes.clear();
    for (const std::size_t expert : gate.choose(scores)) {
      const std::size_t slot = redundant_experts == 0 ? expert : slot_of(expert, slots, model, uniform(random));
      ranks.push_back(slot / slots_per_rank);
      nodes.push_back(ranks.back() / static_cast<std::size_t>(gpus_per_node));
    }
    rank_count += distinct(ranks);
    node_count += distinct(nodes);
  }
  return {static_cast<double>(node_count) / kTokens, static_cast<double>(rank_count) / kTokens};
}

ExpertLoad balanced_load(const Architecture& model, double tokens_per_rank, int ep, const Spread& spread,
                         int redundant_experts) {
  const int slots = model.n_routed_experts + redundant_experts;
  const double per_slot = tokens_per_rank * ep * model.num_experts_per_tok / slots;
  const int local_slots = slots / ep;
  return {local_slots * round_up(per_slot), tokens_per_rank * spread.ranks_per_token, local_slots * per_slot};
}

ExpertLoad given_load(const Architecture& model, double padded_rows, int ep, const Spread& spread) {
  const double padding = model.n_routed_experts / static_cast<double>(ep) * (kRowPadding / 2.0);
  const double rows = std::max(padded_rows - padding, padded_rows / 2);
  return {padded_rows, rows * spread.ranks_per_token / model.num_experts_per_tok, rows};
}

}  // namespace moeline

#include "routing/gating.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace moeline {
namespace {

auto best_first(const std::vector<double>& by) {
  return [&by](std::size_t a, std::size_t b) { return by[a] != by[b] ? by[a] > by[b] : a < b; };
}

// Of mean 1; empty for empty loads.
std::vector<double> weights_of(const std::vector<double>& loads, int top_k) {
  constexpr double kSurest = 1 - 1e-9;
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<double> weights;
  weights.reserve(loads.size());
  for (const double load : loads) weights.push_back(-std::log1p(-std::min(top_k * load / total, kSurest)));
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(loads.size());
  for (double& weight : weights) weight /= mean;
  return weights;
}

}  // namespace

Gating gating_of(const Architecture& model) {
  return {model.n_routed_experts, model.num_experts_per_tok, model.n_group, model.topk_group};
}

Architecture benchmark_gating(Architecture model, int nodes) {
  model.n_group = nodes;
  model.topk_group = std::min(nodes, 4);
  return model;
}

TokenStream::TokenStream(const Gating& gating, unsigned seed, const std::vector<double>& loads)
    : top_k_(static_cast<std::size_t>(gating.top_k)),
      kept_groups_(static_cast<std::size_t>(gating.kept_groups)),
      group_size_(static_cast<std::size_t>(gating.experts / gating.groups)),
      weights_(weights_of(loads, gating.top_k)),
      random_(seed),
      keys_(static_cast<std::size_t>(gating.experts)),
      group_scores_(static_cast<std::size_t>(gating.groups)),
      groups_(static_cast<std::size_t>(gating.groups)) {
  MOELINE_CHECK(top_k_ <= kept_groups_ * group_size_, std::to_string(top_k_));
  MOELINE_CHECK(loads.empty() || loads.size() == keys_.size(), std::to_string(loads.size()));
}

const std::vector<std::size_t>& TokenStream::next() {
  draw_keys();
  keep_best_groups();
  const auto chosen = static_cast<std::ptrdiff_t>(top_k_);
  std::partial_sort(experts_.begin(), experts_.begin() + chosen, experts_.end(), best_first(keys_));
  experts_.resize(top_k_);
  return experts_;
}

void TokenStream::draw_keys() {
  for (std::size_t expert = 0; expert < keys_.size(); ++expert) {
    const double u = uniform();
    keys_[expert] = weights_.empty() ? u : std::log(u) / weights_[expert];
  }
}

void TokenStream::keep_best_groups() {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group] = group;
    group_scores_[group] = two_best(group * group_size_);
  }
  const auto kept = static_cast<std::ptrdiff_t>(kept_groups_);
  std::partial_sort(groups_.begin(), groups_.begin() + kept, groups_.end(), best_first(group_scores_));
  experts_.clear();
  for (std::size_t i = 0; i < kept_groups_; ++i) {
    for (std::size_t j = 0; j < group_size_; ++j) experts_.push_back(groups_[i] * group_size_ + j);
  }
}

double TokenStream::two_best(std::size_t first) const {
  const bool weighted = !weights_.empty();
  const double least = weighted ? -std::numeric_limits<double>::infinity() : 0;
  double best = least;
  double second = least;
  for (std::size_t i = first; i < first + group_size_; ++i) {
    second = std::max(second, std::min(best, keys_[i]));
    best = std::max(best, keys_[i]);
  }
  return weighted ? std::exp(best) + std::exp(second) : best + second;
}

}  // namespace moeline

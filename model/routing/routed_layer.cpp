#include "routing/routed_layer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>

#include "base/error.hpp"
#include "routing/destinations.hpp"

namespace moeline {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double busiest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end()) * static_cast<double>(values.size()) / sum(values);
}

std::vector<double> shares_by(const RoutedLayer& layer, int places, int (Placement::*place_of)(int) const) {
  std::vector<double> shares(static_cast<std::size_t>(places), 0);
  for (int slot = 0; slot < layer.placement.slots(); ++slot) {
    shares[static_cast<std::size_t>((layer.placement.*place_of)(slot))] +=
        layer.slot_shares[static_cast<std::size_t>(slot)];
  }
  return shares;
}

// Probability that a token takes none of a place's slots, were its choices independent; then scaled to `mean` places
// per token in all.
std::vector<double> reach_of(const RoutedLayer& layer, int top_k, int places, int (Placement::*place_of)(int) const,
                             double mean) {
  std::vector<double> reach(static_cast<std::size_t>(places), 1);
  for (int slot = 0; slot < layer.placement.slots(); ++slot) {
    reach[static_cast<std::size_t>((layer.placement.*place_of)(slot))] *=
        1 - std::min(1.0, top_k * layer.slot_shares[static_cast<std::size_t>(slot)]);
  }
  for (double& each : reach) each = 1 - each;
  const double scale = mean / sum(reach);
  for (double& each : reach) each = std::min(1.0, each * scale);
  return reach;
}

}  // namespace

std::vector<double> attainable_shares(const LayerLoads& loads, int top_k) {
  MOELINE_CHECK(top_k > 0 && static_cast<std::size_t>(top_k) <= loads.size(), std::to_string(top_k));
  const double most = 1.0 / top_k;
  std::vector<double> shares(loads.size(), 0);
  double left = 1;                // of all pairs
  double open_load = sum(loads);  // of the experts not yet at their most
  std::vector<std::size_t> by_load(loads.size());
  std::iota(by_load.begin(), by_load.end(), std::size_t{0});
  std::stable_sort(by_load.begin(), by_load.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  for (const std::size_t expert : by_load) {
    shares[expert] = open_load > 0 ? std::min(most, left * loads[expert] / open_load) : 0;
    left -= shares[expert];
    open_load -= loads[expert];
  }
  return shares;
}

RoutedLayer routed_layer(const Gating& gating, const LayerLoads& loads, Placement placement, bool reach,
                         unsigned seed) {
  constexpr int kTokens = 512;
  const std::vector<double> shares = attainable_shares(loads, gating.top_k);
  const std::vector<int> copies = copies_of(placement, gating.experts);
  RoutedLayer layer;
  layer.placement = std::move(placement);
  for (const int expert : layer.placement.expert_of_slot) {
    const auto of = static_cast<std::size_t>(expert);
    layer.slot_shares.push_back(shares[of] / copies[of]);
  }
  layer.spread.busiest_rank_rows = busiest(shares_by(layer, layer.placement.gpus, &Placement::gpu_of));
  if (!reach) return layer;
  const Spread mean = expected_spreads(gating, shares, std::span(&layer.placement, 1), seed, kTokens).front().mean;
  layer.spread.nodes_per_token = mean.nodes_per_token;
  layer.spread.ranks_per_token = mean.ranks_per_token;
  layer.rank_reach = reach_of(layer, gating.top_k, layer.placement.gpus, &Placement::gpu_of, mean.ranks_per_token);
  layer.spread.busiest_rank = busiest(layer.rank_reach);
  layer.spread.busiest_node =
      busiest(reach_of(layer, gating.top_k, layer.placement.nodes, &Placement::node_of, mean.nodes_per_token));
  return layer;
}

ExpertLoad load_of(const RoutedLayer& layer, int rank, double tokens, int top_k) {
  const double all_tokens = tokens * layer.placement.gpus;
  ExpertLoad load;
  for (int slot = 0; slot < layer.placement.slots(); ++slot) {
    if (layer.placement.gpu_of(slot) != rank) continue;
    const double rows = all_tokens * top_k * layer.slot_shares[static_cast<std::size_t>(slot)];
    load.valid += rows;
    load.rows += hit(rows) * padded(rows);
    load.hit += hit(rows);
    load.group_rows.push_back(static_cast<int>(whole_rows(rows)));
  }
  load.expected_rows = all_tokens * top_k / layer.placement.slots();
  if (!layer.rank_reach.empty()) load.received = all_tokens * layer.rank_reach[static_cast<std::size_t>(rank)];
  return load;
}

}  // namespace moeline

#include "routing/balancing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "routing/destinations.hpp"

namespace moeline {
namespace {

std::string source_of(const BalanceRequest& request) { return request.file.empty() ? "--power-law" : request.file; }

LoadFile drawn_loads(const BalanceRequest& request) {
  LoadFile drawn{{0}, std::vector<int>(static_cast<std::size_t>(request.layers)), {}, {}};
  std::iota(drawn.layers.begin(), drawn.layers.end(), 0);
  const LoadSource source{LoadDistribution::power_law, request.alpha.value(), request.seed, {}};
  drawn.loads = {expert_loads(source, request.layers, request.experts.value())};
  return drawn;
}

LoadFile loads_of(const BalanceRequest& request) {
  if (request.file.empty()) return drawn_loads(request);
  return read_load_file(request.file, {request.experts.value_or(0), request.gpus});
}

Loads sum_of(const std::vector<Loads>& steps) {
  Loads sum = steps.front();
  for (std::size_t step = 1; step < steps.size(); ++step) {
    for (std::size_t layer = 0; layer < sum.size(); ++layer) {
      for (std::size_t expert = 0; expert < sum[layer].size(); ++expert) {
        sum[layer][expert] += steps[step][layer][expert];
      }
    }
  }
  return sum;
}

PlacementShape shape_of(const BalanceRequest& request, int experts) {
  const int filled = (experts + request.gpus - 1) / request.gpus * request.gpus;
  const PlacementShape shape{experts, request.replicas.value_or(filled), request.groups, request.nodes, request.gpus};
  const std::string broken = broken_rule(shape);
  if (!broken.empty()) throw SpecError(source_of(request) + ": " + broken);
  return shape;
}

void refuse_gating(const BalanceRequest& request) {
  if (request.top_k || request.kept_groups) {
    throw SpecError(request.file + ": a router map says what tokens chose: --top-k and --topk-group are for loads");
  }
}

Gating gating_of(const BalanceRequest& request, const PlacementShape& shape) {
  constexpr int kTopK = 8;
  constexpr int kKeptGroups = 4;
  Gating gating{shape.experts, 0, shape.groups, request.kept_groups.value_or(std::min(kKeptGroups, shape.groups))};
  if (gating.kept_groups > gating.groups) {
    throw SpecError(fmt::format("{}: topk-group must be at most groups: {} of {}", source_of(request),
                                gating.kept_groups, gating.groups));
  }
  const int choice = gating.kept_groups * (shape.experts / shape.groups);
  gating.top_k = request.top_k.value_or(std::min(kTopK, choice));
  if (gating.top_k > choice) {
    throw SpecError(fmt::format("{}: top-k must be at most the experts of the groups chosen: {} of {}",
                                source_of(request), gating.top_k, choice));
  }
  return gating;
}

BalancedLayer balance_layer(int layer, const LayerLoads& loads, const Placement& before, Placement after) {
  BalancedLayer balanced;
  balanced.layer = layer;
  balanced.gpus_before = imbalance(gpu_loads(before, loads));
  balanced.gpus_after = imbalance(gpu_loads(after, loads));
  balanced.nodes_before = imbalance(node_loads(before, loads));
  balanced.nodes_after = imbalance(node_loads(after, loads));
  balanced.placement = std::move(after);
  return balanced;
}

// Tokens' homes are uniform over GPUs, so of the nodes reached one in `nodes` is the own.
CrossNode drawn_traffic(const Balancing& balancing, const LayerLoads& loads, const std::vector<Placement>& placements,
                        unsigned seed) {
  const auto spreads = expected_spreads(balancing.gating, loads, placements, seed, balancing.tokens);
  const double others = 1 - 1.0 / balancing.shape.nodes;
  return {spreads[0].mean.nodes_per_token * others, spreads[1].mean.nodes_per_token * others,
          spreads[0].standard_error.nodes_per_token * others, spreads[1].standard_error.nodes_per_token * others};
}

bool has_overfull_expert(const LayerLoads& loads, int top_k) {
  const double tokens = std::accumulate(loads.begin(), loads.end(), 0.0) / top_k;
  return *std::max_element(loads.begin(), loads.end()) > tokens * (1 + 1e-9);
}

}  // namespace

double Balancing::worst(double BalancedLayer::*of) const {
  double worst = 0;
  for (const BalancedLayer& layer : layers) worst = std::max(worst, layer.*of);
  return worst;
}

CrossNode Balancing::traffic() const {
  const auto count = static_cast<double>(layers.size());
  CrossNode mean;
  for (const BalancedLayer& layer : layers) {
    mean.before += layer.traffic.before / count;
    mean.after += layer.traffic.after / count;
    mean.error_before = std::hypot(mean.error_before, layer.traffic.error_before / count);
    mean.error_after = std::hypot(mean.error_after, layer.traffic.error_after / count);
  }
  return mean;
}

Balancing balance(const BalanceRequest& request) {
  const LoadFile file = loads_of(request);
  Balancing balancing;
  balancing.shape = shape_of(request, file.experts());
  balancing.counted = file.map.has_value();
  if (balancing.counted) {
    refuse_gating(request);
  } else {
    balancing.gating = gating_of(request, balancing.shape);
    balancing.tokens = request.tokens;
  }
  const Loads loads = sum_of(file.loads);
  const Placement before = in_order(file.experts(), request.gpus, request.nodes);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const std::vector<Placement> placements = {before, place_experts(loads[i], balancing.shape)};
    BalancedLayer layer = balance_layer(file.layers[i], loads[i], before, placements[1]);
    if (balancing.counted) {
      layer.traffic = {other_nodes_per_token(*file.map, i, before), other_nodes_per_token(*file.map, i, placements[1]),
                       0, 0};
    } else {
      layer.traffic = drawn_traffic(balancing, loads[i], placements, request.seed + static_cast<unsigned>(i));
      balancing.overfull += has_overfull_expert(loads[i], balancing.gating.top_k) ? 1 : 0;
    }
    balancing.layers.push_back(std::move(layer));
  }
  if (file.steps.size() > 1) {
    balancing.steps = file.steps;
    balancing.followed = follow_loads(file.loads, balancing.shape, request.policy);
  }
  return balancing;
}

}  // namespace moeline

// One balancing of experts: loads, where EPLB puts the experts, and what that does to GPUs, nodes and the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routing/gating.hpp"
#include "routing/load_file.hpp"
#include "routing/rebalance.hpp"

namespace moeline {

struct BalanceRequest {
  std::string file;             ///< empty: a power law
  std::optional<double> alpha;  ///< of the power law
  int layers = 1;               ///< of the power law
  std::optional<int> experts;   ///< of the power law or a router map; of loads, what they must have
  std::optional<int> replicas;  ///< default: the experts, rounded up to a multiple of gpus
  int gpus = 1;
  int nodes = 1;
  int groups = 1;
  std::optional<int> top_k;        ///< default: 8, or as many as there are to choose from
  std::optional<int> kept_groups;  ///< default: 4, or all
  unsigned seed = 1;
  int tokens = 2048;  ///< sampled, per layer
  RebalancePolicy policy;
};

/// Distinct nodes per token besides its own; standard errors are 0 where it was counted.
struct CrossNode {
  double before = 0;
  double after = 0;
  double error_before = 0;
  double error_after = 0;
};

struct BalancedLayer {
  int layer = 0;  ///< as numbered in the file
  Placement placement;
  double gpus_before = 0, gpus_after = 0;    ///< max / mean of the GPUs' loads
  double nodes_before = 0, nodes_after = 0;  ///< of the nodes'
  CrossNode traffic;
};

struct Balancing {
  PlacementShape shape;
  Gating gating;         ///< that tokens were drawn with, where they were
  bool counted = false;  ///< traffic is a router map's own
  int tokens = 0;        ///< drawn per layer
  int overfull = 0;      ///< layers with an expert of more load than all tokens can give it
  std::vector<BalancedLayer> layers;
  std::vector<int> steps;  ///< as numbered in the file
  std::vector<BalancedStep> followed;

  [[nodiscard]] double worst(double BalancedLayer::*of) const;
  /// Mean over layers.
  [[nodiscard]] CrossNode traffic() const;
};

/// With several time steps, layers are balanced for the sum of all steps.
/// Throws SpecError: bad files, and shapes that cannot be placed.
[[nodiscard]] Balancing balance(const BalanceRequest& request);

}  // namespace moeline

// What a new placement of experts sends over the links of a cluster.
#pragma once

#include <vector>

#include "routing/expert_loads.hpp"
#include "routing/expert_placement.hpp"

namespace moeline {

/// Copies of experts.
struct ExpertMoves {
  int all = 0;                  ///< that GPUs receive, all layers together
  int busiest_nic = 0;          ///< sent or received by the GPU whose NIC has most to do
  int busiest_nvlink_port = 0;  ///< the same inside nodes
};

/// A GPU that newly needs an expert gets it from a GPU of its own node that has it, where there is one, else from
/// another node; of several from the one that has sent least so far. `before` and `after`: one placement for each
/// layer. REQUIRES: equal layers, experts, GPUs and nodes.
[[nodiscard]] ExpertMoves expert_moves(const std::vector<Placement>& before, const std::vector<Placement>& after);

// Placements over time: loads drift, and a placement made from what they were serves what they are.

struct RebalancePolicy {
  int every_steps = 1;
  /// Exponential moving average: average = (1 - newest_weight) x average + newest_weight x newest step. The first step
  /// begins it. Within (0, 1]; 1 forgets all but the newest.
  double newest_weight = 0.5;
};

/// max / mean of the GPUs' loads in one time step.
struct Imbalance {
  double worst = 0;  ///< of all layers
  double mean = 0;   ///< over layers
};

struct BalancedStep {
  Imbalance before;      ///< experts in order, no copies
  Imbalance fixed;       ///< placed once, from the first step
  Imbalance rebalanced;  ///< placed from the moving average of earlier steps
  int moved_copies = 0;  ///< sent for this step's new placement, all layers together
};

/// Of the steps, oldest first, as RebalancePolicy says. REQUIRES: at least one step.
[[nodiscard]] Loads moving_average(const std::vector<Loads>& steps, double newest_weight);

/// One placement per layer.
[[nodiscard]] std::vector<Placement> place_layers(const Loads& loads, const PlacementShape& shape);

[[nodiscard]] Imbalance gpu_imbalance(const std::vector<Placement>& placements, const Loads& loads);

/// Of each step from the second on: a step is served by placements that were made before it. New ones are made before
/// the second step, and then every `every_steps`. REQUIRES: equal layers and experts in all steps.
[[nodiscard]] std::vector<BalancedStep> follow_loads(const std::vector<Loads>& steps, const PlacementShape& shape,
                                                     const RebalancePolicy& policy);

}  // namespace moeline

// Which GPU holds which expert: DeepSeek's expert load balancing (EPLB; arXiv 2412.19437, section 3.4.1, and the
// README of github.com/deepseek-ai/EPLB). Experts with much load get more copies, and copies are packed on GPUs so that
// all get about the same.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// What is placed where, for one layer.
struct PlacementShape {
  int experts = 0;   ///< logical ones
  int replicas = 0;  ///< physical slots: every expert once, and the redundant copies
  int groups = 1;    ///< of the gating; experts of a group are neighbours
  int nodes = 1;
  int gpus = 1;  ///< of all nodes

  /// Groups stay whole on a node where they divide evenly among the nodes; else the policy is global.
  [[nodiscard]] bool hierarchical() const { return groups % nodes == 0; }
};

/// The rule that a shape breaks, with its numbers, or "". Names are those of the fields.
[[nodiscard]] std::string broken_rule(const PlacementShape& shape);

/// Slots lie on GPUs, and GPUs on nodes, in order and in equal parts; where the slots do not divide evenly, parts
/// differ by one.
struct Placement {
  std::vector<int> expert_of_slot;
  int gpus = 1;
  int nodes = 1;

  [[nodiscard]] int slots() const { return static_cast<int>(expert_of_slot.size()); }
  [[nodiscard]] int gpu_of(int slot) const;
  [[nodiscard]] int node_of(int slot) const { return gpu_of(slot) / (gpus / nodes); }
};

/// Every expert once, in order: what a cluster without load balancing does.
[[nodiscard]] Placement in_order(int experts, int gpus, int nodes);
/// The same with copies, dealt without regard to load: every expert once, then the first ones again.
[[nodiscard]] Placement in_order(const PlacementShape& shape);

/// EPLB. Hierarchical: groups are packed on nodes, experts replicated inside their node, copies packed on its GPUs.
/// Global: the same, as if all GPUs were one node and all experts one group. Ties go to the first.
/// `loads`: of each expert, not negative. REQUIRES: broken_rule(shape) is "".
[[nodiscard]] Placement place_experts(const std::vector<double>& loads, const PlacementShape& shape);

/// How many slots serve each expert.
[[nodiscard]] std::vector<int> copies_of(const Placement& placement, int experts);

/// Each expert's load is shared evenly by its copies.
[[nodiscard]] std::vector<double> gpu_loads(const Placement& placement, const std::vector<double>& loads);
[[nodiscard]] std::vector<double> node_loads(const Placement& placement, const std::vector<double>& loads);

/// max / mean; 1 is balanced. REQUIRES: a positive sum.
[[nodiscard]] double imbalance(const std::vector<double>& loads);

/// Copies of experts that some GPU needs for `after` and does not hold in `before`: what a change must send.
[[nodiscard]] int moved_copies(const Placement& before, const Placement& after);

}  // namespace moeline

// What a new placement of experts sends over the links of a cluster.
#pragma once

#include <vector>

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

}  // namespace moeline

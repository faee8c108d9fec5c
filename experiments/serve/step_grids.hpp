// What the steps of a deployment take: a grid for each state that its replicas have been in.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/serve/step_grid.hpp"
#include "routing/expert_placement.hpp"

namespace moeline {

/// Of the steps of such replicas, one grid for each state that they have been in.
class StepGrids {
 public:
  /// As of a StepGrid. REQUIRES: the workload outlives it.
  StepGrids(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload, RequestPart part);

  [[nodiscard]] StepGrid& of(const StepState& asked);
  /// REQUIRES: it has been asked for.
  [[nodiscard]] const StepGrid& known(const StepState& asked) const;
  /// As the scenario has it.
  [[nodiscard]] StepGrid& base() { return base_; }
  [[nodiscard]] const StepGrid& base() const { return base_; }
  /// Of a GPU of such a replica, alike in all states.
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] ReplicaShape shape() const { return base_.shape(memory_); }
  [[nodiscard]] std::size_t simulated() const;
  [[nodiscard]] KnownTime known_time() const;
  /// Its scenario has a file of loads.
  [[nodiscard]] bool follows_loads() const { return base_.setup().scenario.routing.distribution == Distribution::file; }
  /// The largest error in the middle of cells, of so many that are spread over all.
  [[nodiscard]] double error_in_middles(std::size_t most);
  /// Of experts, from where the loads before one time step place them to where those before another do. All NICs and
  /// all of NVLink at once, at their nominal rates.
  [[nodiscard]] PlacementCost place_anew(int from, int to);

 private:
  [[nodiscard]] StepState own(StepState state) const;
  [[nodiscard]] std::vector<std::string> assignments_of(const StepState& state) const;
  [[nodiscard]] std::vector<Placement> placements_by(int step);

  Spec scenario_;
  std::vector<std::string> assignments_;
  const ServeWorkload& workload_;
  RequestPart part_;
  StepGrid base_;
  Memory memory_;
  std::map<StepState, StepGrid> grids_;
  std::map<std::pair<int, int>, PlacementCost> placed_anew_;
};

/// REQUIRES: the grids outlive what they give.
[[nodiscard]] ReplicaPool pool_of(StepGrids& grids, int replicas);
/// These replicas answer, and where there are others, those compute their prompts.
[[nodiscard]] ServeDeployment deployment_of(StepGrids& answers, StepGrids* prompts, const ServeWorkload& workload);

}  // namespace moeline

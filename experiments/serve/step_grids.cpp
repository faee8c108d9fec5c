#include "experiments/serve/step_grids.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "moe/memory.hpp"
#include "routing/rebalance.hpp"

namespace moeline {

StepGrids::StepGrids(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload,
                     RequestPart part)
    : scenario_(std::move(scenario)),
      assignments_(std::move(assignments)),
      workload_(workload),
      part_(part),
      base_(scenario_, assignments_, workload_, part_),
      memory_(base_.memory(workload_)) {}

std::vector<std::string> StepGrids::assignments_of(const StepState& state) const {
  std::vector<std::string> assignments = assignments_;
  const auto add = [&](const char* key, int value) { assignments.push_back(fmt::format("{}={}", key, value)); };
  if (state.loads >= 0) add("routing.step", state.loads);
  if (state.placed_before >= 0) add("routing.placed_before", state.placed_before);
  if (state.draw > 0) add("seed", base_.setup().scenario.seed + state.draw);
  return assignments;
}

// Pools whose scenario has no file of loads do not follow it.
StepState StepGrids::own(StepState state) const { return follows_loads() ? state : StepState{.draw = state.draw}; }

StepGrid& StepGrids::of(const StepState& asked) {
  const StepState state = own(asked);
  if (state == StepState{}) return base_;
  const auto known = grids_.find(state);
  if (known != grids_.end()) return known->second;
  return grids_.try_emplace(state, scenario_, assignments_of(state), workload_, part_).first->second;
}

const StepGrid& StepGrids::known(const StepState& asked) const {
  const StepState state = own(asked);
  return state == StepState{} ? base_ : grids_.at(state);
}

KnownTime StepGrids::known_time() const {
  KnownTime sum = base_.known_time();
  for (const auto& [state, grid] : grids_) sum.add(grid.known_time());
  return sum;
}

std::size_t StepGrids::simulated() const {
  std::size_t sum = base_.simulated();
  for (const auto& [state, grid] : grids_) sum += grid.simulated();
  return sum;
}

double StepGrids::error_in_middles(std::size_t most) {
  std::vector<std::pair<StepGrid*, std::size_t>> cells;
  const auto add = [&](StepGrid& grid) {
    for (std::size_t cell = 0; cell < grid.cells(); ++cell) cells.emplace_back(&grid, cell);
  };
  add(base_);
  for (auto& [state, grid] : grids_) add(grid);
  const std::size_t every = std::max<std::size_t>(1, cells.size() / most);
  double error = 0;
  for (std::size_t i = every / 2; i < cells.size(); i += every) {
    error = std::max(error, cells[i].first->error_in_middle(cells[i].second));
  }
  return error;
}

std::vector<Placement> StepGrids::placements_by(int step) {
  std::vector<Placement> placements;
  for (const RoutedLayer& layer : of({.loads = step, .placed_before = step}).setup().routed) {
    placements.push_back(layer.placement);
  }
  return placements;
}

PlacementCost StepGrids::place_anew(int from, int to) {
  const auto known = placed_anew_.find({from, to});
  if (known != placed_anew_.end()) return known->second;
  const std::vector<Placement> before = placements_by(from);
  const ExpertMoves moves = expert_moves(before, placements_by(to));
  const Setup& setup = base_.setup();
  const double layers_for_each = setup.model.moe_layers() / static_cast<double>(before.size());
  const double copy_MB = layers_for_each * routed_expert_bytes(setup.model, setup.scenario.parallelism.moe_tp) / 1e6;
  const PlacementCost cost{.alone_ms = std::max(moves.busiest_nic * copy_MB / setup.machine.facts.nic_GBps,
                                                moves.busiest_nvlink_port * copy_MB / setup.machine.facts.nvlink_GBps),
                           .nic_MB = moves.busiest_nic * copy_MB};
  return placed_anew_[{from, to}] = cost;
}

ReplicaPool pool_of(StepGrids& grids, int replicas) {
  const StepGrid& base = grids.base();
  ReplicaPool pool{.replicas = replicas,
                   .shape = grids.shape(),
                   .step = [&grids](const StepLoad& busiest, const StepLoad& mean,
                                    const StepState& state) { return grids.of(state).time(busiest, mean); },
                   .token_MB = base.token_MB(),
                   .draws = base.setup().scenario.samples};
  if (grids.follows_loads()) pool.place_anew = [&grids](int from, int to) { return grids.place_anew(from, to); };
  return pool;
}

ServeDeployment deployment_of(StepGrids& answers, StepGrids* prompts, const ServeWorkload& workload) {
  ServeDeployment deployment;
  deployment.answers = pool_of(answers, workload.replicas);
  if (prompts == nullptr) return deployment;
  deployment.prompts = pool_of(*prompts, workload.prefill.replicas);
  deployment.transfer_ms = [&answers, prompts](double tokens, const StepLoad& from, const StepLoad& to) {
    return std::max(prompts->base().transfer_ms(tokens, from), answers.base().transfer_ms(tokens, to));
  };
  return deployment;
}

}  // namespace moeline

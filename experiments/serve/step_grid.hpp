// What a step of a replica takes: simulated timelines, on a grid over what is in the step.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/run/run.hpp"
#include "experiments/serve/cluster.hpp"

namespace moeline {

class StepGrid {
 public:
  /// Of the scenario with these changes, the workload of each step in the place of its own. `part`: what such a replica
  /// does of a request, by which its steps are of prompts, of answers, or of any kind.
  StepGrid(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload, RequestPart part);

  /// Between steps that are simulated: of 1, 2, 3, 4, 6, 8, ... requests, and of so many times 64 keys or tokens;
  /// linear in each. Where groups differ, a step is one of the mean load, and longer by what the busiest group's own
  /// phases (all but dispatch, experts and combine) take longer. Beside caches that move it is longer by what these
  /// take of the NIC. Throws SpecError where such a step is no scenario.
  [[nodiscard]] double ms(const StepLoad& busiest, const StepLoad& mean);
  /// Simulated as it is.
  [[nodiscard]] double exact_ms(const StepLoad& busiest, const StepLoad& mean) const;
  /// Steps that were simulated for ms().
  [[nodiscard]] std::size_t simulated() const { return known_.size(); }

  [[nodiscard]] const Setup& setup() const { return one_; }
  /// `memory_reserve`: share of a GPU's memory that stays free.
  [[nodiscard]] ReplicaShape shape(double memory_reserve = 0) const;
  /// Of the cache of so many tokens, over each GPU's NIC: while such a step runs, with whose all-to-all it shares the
  /// NIC, or at the NIC's peak where nothing runs.
  [[nodiscard]] double transfer_ms(double tokens, const StepLoad& mean);

 private:
  using Point = std::array<int, 4>;  // of a load, in the order of its members
  struct Cost {
    double ms = 0;
    double own_ms = 0;     ///< of it, phases that a group has for itself
    double beside_ms = 0;  ///< that it takes while caches move beside it all along
    double nic_share = 1;  ///< of the NIC, that these get
  };
  struct PointHash {
    std::size_t operator()(const Point& point) const;
  };
  // Of the grid: costs at its corners, null where none has been asked for.
  using Cell = std::array<const Cost*, 16>;
  [[nodiscard]] Setup setup_of(const Point& point, double kv_transfer_MB = 0) const;
  [[nodiscard]] double bytes_of_token() const;
  [[nodiscard]] double bytes_of_step(int most_tokens) const;
  [[nodiscard]] double combined(const Cost& mean, double busiest_own_ms, double moved) const;
  [[nodiscard]] Cost simulated_cost(const Point& point) const;
  void add_transfer(const Point& point, Cost& cost) const;
  [[nodiscard]] double nic_ms(double tokens) const;
  [[nodiscard]] const Cost* at(const Point& point);
  [[nodiscard]] Cost between(const StepLoad& load);

  Spec scenario_;
  std::vector<std::string> assignments_;
  std::string drafts_;  ///< keys of the steps' workload
  bool computes_prompts_, moves_caches_;
  int fewest_answers_;
  Setup one_;  ///< of one request
  double bytes_of_token_ = 0;
  double bytes_of_step_ = 0;  ///< the largest one's, but for its KV cache
  std::unordered_map<Point, Cost, PointHash> known_;
  std::unordered_map<Point, Cell, PointHash> cells_;  // by their least corner
};

/// REQUIRES: the grids outlive what they give.
[[nodiscard]] ReplicaPool pool_of(StepGrid& grid, int replicas, double memory_reserve = 0);
/// These replicas answer, and where there are others, those compute their prompts.
[[nodiscard]] ServeDeployment deployment_of(StepGrid& answers, StepGrid* prompts, const ServeWorkload& workload,
                                            double memory_reserve = 0);

}  // namespace moeline

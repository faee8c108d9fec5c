// What a step of a replica takes: simulated timelines, on a grid over what is in the step.
#pragma once

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/serve/cluster.hpp"

namespace moeline {

class StepGrid {
 public:
  /// Two neighbours on an axis, and how near the second is.
  struct Between {
    int low = 0, high = 0;
    double share = 0;
  };

  /// Of the scenario with these changes, the workload of each step in the place of its own. `part`: what such a replica
  /// does of a request, by which its steps are of prompts, of answers, or of any kind.
  StepGrid(Spec scenario, std::vector<std::string> assignments, const ServeWorkload& workload, RequestPart part);

  /// Between steps that are simulated: of 1, 2, 3, 4, 6, 8, ... requests or prompts, and so many times 64 keys or
  /// tokens; linear in each. Where groups differ, a step is one of the mean load, and longer by what the busiest
  /// group's own phases (all but dispatch, experts and combine) take longer. Steps that only decode have a graph of the
  /// busiest group's requests, and are told apart by it. Beside caches and experts that move it is longer by what these
  /// take of the NIC. Throws SpecError where such a step is no scenario.
  [[nodiscard]] StepTime time(const StepLoad& busiest, const StepLoad& mean);
  /// Simulated as it is.
  [[nodiscard]] double exact_ms(const StepLoad& busiest, const StepLoad& mean) const;
  /// Relative, of time() in the middle of the i-th cell that it has used. Where a step's time bends one way within a
  /// cell, it is nowhere further off.
  [[nodiscard]] double error_in_middle(std::size_t cell);
  [[nodiscard]] std::size_t cells() const { return cells_in_turn_.size(); }
  /// Steps that were simulated for time().
  [[nodiscard]] std::size_t simulated() const { return known_.size(); }
  /// Of these steps together.
  [[nodiscard]] KnownTime known_time() const;

  [[nodiscard]] const Setup& setup() const { return one_; }
  /// Of the largest step of each kind, with all the room that this leaves to caches. Throws SpecError where it leaves
  /// none.
  [[nodiscard]] Memory memory(const ServeWorkload& workload) const;
  /// With such a memory.
  [[nodiscard]] ReplicaShape shape(const Memory& memory) const;
  /// Of the cache, on each GPU.
  [[nodiscard]] double token_MB() const { return bytes_of_token_ / 1e6; }
  /// Of the cache of so many tokens, over each GPU's NIC: while such a step runs, with whose all-to-all it shares the
  /// NIC, or at the NIC's peak where nothing runs.
  [[nodiscard]] double transfer_ms(double tokens, const StepLoad& mean);

 private:
  using Point = std::array<int, 6>;  // of a load, in the order of its members; then the batch of its graph
  struct Cost {
    double ms = 0;
    double own_ms = 0;     ///< of it, phases that a group has for itself
    double beside_ms = 0;  ///< that it takes while something moves beside it all along
    double nic_share = 1;  ///< of the NIC, that this gets
    KnownTime known{};
  };
  struct PointHash {
    std::size_t operator()(const Point& point) const;
  };
  // Of the grid: costs at its corners, null where none has been asked for.
  using Cell = std::array<const Cost*, 32>;
  using Axes = std::array<Between, 5>;
  [[nodiscard]] static double weight_of(const Axes& axes, unsigned corner);
  [[nodiscard]] static Point point_at(const Axes& axes, int graph, unsigned corner);
  [[nodiscard]] Axes axes_of(const StepLoad& load, int graph) const;
  [[nodiscard]] double own_ms_of(const StepLoad& busiest, int graph);
  [[nodiscard]] int graph_of(const StepLoad& busiest) const;
  [[nodiscard]] int known_graph(const StepLoad& busiest);
  [[nodiscard]] Setup setup_of(const Point& point, double kv_transfer_MB = 0) const;
  [[nodiscard]] Memory memory_of_answers(const ServeWorkload& workload) const;
  [[nodiscard]] StepTime combined(const Cost& mean, double busiest_own_ms, double moved_MB) const;
  [[nodiscard]] Cost simulated_cost(const Point& point, bool moves) const;
  void add_transfer(const Point& point, Cost& cost) const;
  [[nodiscard]] double nic_ms(double moved_MB) const { return moved_MB / one_.machine.facts.nic_GBps; }
  void fill(Cell& cell, const Axes& axes, int graph);
  [[nodiscard]] Cost between(const StepLoad& load, int graph);

  Spec scenario_;
  std::vector<std::string> assignments_;
  std::string drafts_;  ///< keys of the steps' workload
  int told_batch_;      ///< 0: by memory and the stack's own limit
  GraphBatch graph_choice_;
  int graph_batch_;  ///< where it is given
  bool computes_prompts_, answers_, moves_;
  int fewest_answers_;
  Setup one_;  ///< of one request
  RequestCache cache_;
  double bytes_of_token_;
  std::unordered_map<int, int> graphs_;  // by the requests of the busiest group
  std::unordered_map<Point, Cost, PointHash> known_;
  std::unordered_map<Point, Cell, PointHash> cells_;  // by their least corner
  std::vector<Point> cells_in_turn_;
};

}  // namespace moeline

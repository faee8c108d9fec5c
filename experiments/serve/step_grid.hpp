// What a step of a replica takes: simulated timelines, on a grid over what is in the step.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "experiments/run/run.hpp"
#include "experiments/serve/replica.hpp"

namespace moeline {

class StepGrid {
 public:
  /// Of the scenario with these changes, the workload of each step in the place of its own.
  StepGrid(Spec scenario, std::vector<std::string> assignments);

  /// Between steps that are simulated: of 1, 2, 3, 4, 6, 8, ... requests, and of so many times 64 keys or tokens;
  /// linear in each. Throws SpecError where such a step is no scenario.
  [[nodiscard]] double ms(const StepLoad& load);
  /// Simulated as it is.
  [[nodiscard]] double exact_ms(const StepLoad& load) const;
  /// Steps that were simulated for ms().
  [[nodiscard]] std::size_t simulated() const { return known_.size(); }

  [[nodiscard]] const Setup& setup() const { return one_answer_; }
  [[nodiscard]] ReplicaShape shape() const;

 private:
  using Point = std::array<int, 4>;  // of a load, in the order of its members
  [[nodiscard]] Setup setup_of(const Point& point) const;
  [[nodiscard]] double simulated_ms(const Point& point) const;
  [[nodiscard]] double at(const Point& point);

  Spec scenario_;
  std::vector<std::string> assignments_;
  Setup one_answer_;
  std::map<Point, double> known_;
};

}  // namespace moeline

// Which loads the experts of a replica have, and where they are: over time.
#pragma once

#include <algorithm>

#include "experiments/serve/serve_log.hpp"
#include "experiments/serve/traffic.hpp"

namespace moeline {

/// New places are those by the loads before the time step that begins then: before the second one first, and then every
/// `rebalance_every`. Places that are due while experts still move wait until they have come.
class ExpertClock {
 public:
  explicit ExpertClock(const LoadCourse& course) : course_(course) {}

  /// Loads are those of this instant from now on.
  void tell(double now_ms) {
    if (course_.step_ms == 0) return;
    now_ = std::min(static_cast<std::size_t>(now_ms / course_.step_ms), course_.steps.size() - 1);
    const auto every = static_cast<std::size_t>(course_.rebalance_every);
    if (every > 0 && now_ > 0) due_ = 1 + (now_ - 1) / every * every;
  }
  /// New places are due, and nothing moves.
  [[nodiscard]] bool is_due() const { return !moves_ && due_ != placed_; }
  /// Experts set out. REQUIRES: is_due().
  void set_out() { moves_ = true, next_ = due_; }
  /// They have come, where they had set out.
  void arrive() {
    if (!moves_) return;
    placed_ = next_;
    moves_ = false;
  }

  /// The first time step of those whose past has placed the experts, or will when those that move have come.
  [[nodiscard]] int placed() const { return number_of(placed_); }
  [[nodiscard]] int next() const { return number_of(next_); }
  [[nodiscard]] StepState state() const {
    if (course_.step_ms == 0) return {};
    return {.loads = number_of(now_), .placed_before = course_.places ? placed() : -1};
  }

 private:
  [[nodiscard]] int number_of(std::size_t position) const { return course_.steps[position]; }

  const LoadCourse& course_;
  std::size_t now_ = 0, placed_ = 0, due_ = 0, next_ = 0;  // positions of time steps
  bool moves_ = false;
};

}  // namespace moeline

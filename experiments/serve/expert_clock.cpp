#include "experiments/serve/expert_clock.hpp"

#include <algorithm>

namespace moeline {

ExpertClock::ExpertClock(const LoadCourse& course) : course_(course) {}

void ExpertClock::tell(double now_ms) {
  if (course_.step_ms == 0) return;
  now_ = std::min(static_cast<std::size_t>(now_ms / course_.step_ms), course_.steps.size() - 1);
  const auto every = static_cast<std::size_t>(course_.rebalance_every);
  if (every > 0 && now_ > 0) due_ = 1 + (now_ - 1) / every * every;
}

void ExpertClock::arrive() {
  if (!moves_) return;
  placed_ = next_;
  moves_ = false;
}

StepState ExpertClock::state() const {
  if (course_.step_ms == 0) return {};
  return {.loads = number_of(now_), .placed_before = course_.places ? placed() : -1};
}

int ExpertClock::number_of(std::size_t position) const { return course_.steps[position]; }

}  // namespace moeline

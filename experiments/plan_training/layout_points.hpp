// What a layout costs: a simulated step, and what it keeps in memory.
#pragma once

#include <string>

#include "base/memo.hpp"
#include "experiments/plan_training/layout.hpp"
#include "experiments/run/run_metrics.hpp"

namespace moeline {

struct LayoutPoint {
  Layout layout;
  std::string refused{};      ///< why the scenario cannot be; nothing else is known then
  bool by_operators = false;  ///< else slot by slot, with GPUs alike
  bool fits = false;
  double step_ms = 0;  ///< 0 where it is not simulated, since not even the least that it keeps would fit
  double bubble_ms = 0, exposed_ms = 0;  ///< mean of the ranks: without a slot to run; communication and no computation
  KnownTime known{};                     ///< of the kernels
  double memory_gib = 0;                 ///< of the fullest GPU; at least, where it is not simulated
  double tokens_per_s = 0;               ///< of each GPU
  double mfu = 0;

  [[nodiscard]] bool is_scenario() const { return refused.empty(); }
  [[nodiscard]] bool ran() const { return step_ms > 0; }
  [[nodiscard]] double rest_ms() const { return step_ms - bubble_ms - exposed_ms; }
  /// What most of the time that nothing computes goes into, or "computation" where that is a tenth of the step at most.
  [[nodiscard]] std::string bound_by() const;
};

/// US dollars a step, or milliseconds where the machine has no price: what layouts are compared by.
[[nodiscard]] double price_of(const LayoutPoint& point, const TrainingJob& job);

/// The layouts of a job. Thread-safe.
class LayoutPoints {
 public:
  /// REQUIRES: `job` outlives it.
  explicit LayoutPoints(const TrainingJob& job) : job_(job) {}

  /// Slot by slot (level: phase), with GPUs alike. `changes`: more of them, as after simulate --set.
  [[nodiscard]] LayoutPoint quick(const Layout& layout, const std::vector<std::string>& changes = {});
  /// Operator by operator, each rank at the pace of its slowest GPU; where that would be too many operators, by slots.
  [[nodiscard]] LayoutPoint confirmed(const Layout& layout);
  /// Steps that were simulated.
  [[nodiscard]] std::size_t size() { return known_.size(); }

 private:
  LayoutPoint simulated(const Layout& layout, const char* level, const std::vector<std::string>& changes);

  const TrainingJob& job_;
  Memo<std::string, LayoutPoint> known_;
};

}  // namespace moeline

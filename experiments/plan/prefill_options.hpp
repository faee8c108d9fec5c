// Prefill: how many units keep up with the prompts, and answer in time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/plan/points.hpp"
#include "experiments/plan/prefill_queue.hpp"

namespace moeline {

/// Of a unit's time. Above it queues are longer than the draws that a percentile comes from.
constexpr double kMostBusy = 0.97;
/// As many units as keep up, at most: TTFT would not fall much beyond.
constexpr int kMostTimes = 8;

struct PrefillOption {
  PrefillChoice choice;
  StepPoint step{};
  int units = 0;
  int spares = 0;              ///< more of them
  double rented_per_unit = 0;  ///< GPUs
  double ttft_ms = 0;          ///< at the limits' percentile
  double utilization = 0;
  std::string bound_by{};

  [[nodiscard]] int gpus() const { return (units + spares) * choice.gpus(); }
  [[nodiscard]] double rented() const { return (units + spares) * rented_per_unit; }
};

/// With fewer GPUs rented and then used, then with the shorter TTFT; of those that are alike in both the smaller step,
/// so that no answer goes by the order in which choices are listed.
[[nodiscard]] bool is_better(const PrefillOption& a, const PrefillOption& b);

/// A way that fits into memory, with its full step.
struct FittingPrefill {
  PrefillChoice choice;
  StepPoint step{};
};

/// One way of prefilling: units of one size, with and without a second micro-batch.
struct PrefillFamily {
  PrefillChoice choice;  ///< without tokens and SMs
  std::string impossible{};
  std::vector<FittingPrefill> fitting{};  ///< the others are not simulated
  std::optional<PrefillOption> best{};    ///< with the fewest GPUs within the limit on TTFT
  /// TTFT at the percentile of the choice that has the shortest, with kMostTimes as many units as keep up.
  double shortest_ttft_ms = 0;
};

/// `choices`: of one family, that differ in tokens per step and SMs for communication.
[[nodiscard]] PrefillFamily prefill_family(const Plan& plan, const Points& points,
                                           const std::vector<PrefillChoice>& choices);

/// Of a step with so many tokens and of smaller ones, and of one of prompts twice as long. `step`: simulated.
[[nodiscard]] StepTimes step_times(const Points& points, int tokens,
                                   const std::function<StepPoint(const PromptPart&)>& step);

}  // namespace moeline

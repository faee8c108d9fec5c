#include "experiments/serve/step_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/run/inference_memory.hpp"
#include "schedules/scenario/fold.hpp"

namespace moeline {
namespace {

constexpr int kFewestKeys = 64;

// Two neighbours on an axis, and how near the second is.
struct Between {
  int low = 0, high = 0;
  double share = 0;
};

Between between(double value, int low, int high) { return {low, high, (value - low) / (high - low)}; }

// 1, 2, 3, 4, 6, 8, 12, ..., times `unit`.
Between on_axis(double value, int unit) {
  int power = unit;
  while (2.0 * power < value) power *= 2;
  const int middle = power + power / 2;
  if (middle == power) return between(std::max<double>(unit, value), power, 2 * power);
  return value <= middle ? between(std::max<double>(unit, value), power, middle) : between(value, middle, 2 * power);
}
Between of_requests(double value) { return on_axis(value, 1); }
Between of_tokens(double value) { return on_axis(value, kFewestKeys); }

std::array<int, 4> rounded(const StepLoad& load) {
  const auto whole = [](double value) { return static_cast<int>(std::lround(value)); };
  return {load.answers, whole(load.keys), load.prompts, whole(load.seen)};
}

}  // namespace

StepGrid::StepGrid(Spec scenario, std::vector<std::string> assignments)
    : scenario_(std::move(scenario)),
      assignments_(std::move(assignments)),
      one_answer_(setup_of({1, kFewestKeys, 0, 0})) {}

// Tokens of prompts that see fewer keys than they are belong to several prompts.
Setup StepGrid::setup_of(const Point& point) const {
  const auto [answers, keys, prompts, seen] = point;
  const std::string decode = fmt::format("batch_size: {}, kv_len: {}", answers, std::max(1, keys));
  const std::string prefill = fmt::format("tokens: {}, prompt_len: {}, cached_len: {}", prompts, std::max(1, seen),
                                          std::max(0, seen - prompts));
  const std::string workload = prompts == 0   ? "phase: decode, " + decode
                               : answers == 0 ? "phase: prefill, " + prefill
                                              : "phase: mixed, " + decode + ", " + prefill;
  std::vector<std::string> assignments = assignments_;
  assignments.push_back("workload={" + workload + "}");
  return folded(read_setup(scenario_, assignments));
}

double StepGrid::simulated_ms(const Point& point) const {
  return to_us(run_scenario(setup_of(point)).metrics.span) / 1e3;
}

double StepGrid::exact_ms(const StepLoad& load) const { return simulated_ms(rounded(load)); }

double StepGrid::at(const Point& point) {
  const auto known = known_.find(point);
  if (known != known_.end()) return known->second;
  return known_[point] = simulated_ms(point);
}

double StepGrid::ms(const StepLoad& load) {
  const Between none{};
  const std::array<Between, 4> axes = {
      load.answers > 0 ? of_requests(load.answers) : none, load.answers > 0 ? of_tokens(load.keys) : none,
      load.prompts > 0 ? of_tokens(load.prompts) : none, load.prompts > 0 ? of_tokens(load.seen) : none};
  double sum = 0;
  for (unsigned corner = 0; corner < 16; ++corner) {
    double weight = 1;
    Point point{};
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const bool high = (corner >> axis & 1U) != 0;
      weight *= high ? axes[axis].share : 1 - axes[axis].share;
      point[axis] = high ? axes[axis].high : axes[axis].low;
    }
    if (weight > 0) sum += weight * at(point);
  }
  return sum;
}

// A cache grows by as much for every token.
ReplicaShape StepGrid::shape() const {
  constexpr int kFew = 1024, kMany = 2048;
  const auto cache = [&](int keys) { return memory_of(setup_of({1, keys, 0, 0})); };
  const Memory few = cache(kFew), many = cache(kMany);
  const double of_token = (many.total() - few.total()) / (kMany - kFew);
  const double left = one_answer_.machine.facts.memory_gib * (1 << 30) - few.total();
  return {.groups = one_answer_.scenario.parallelism.attention_groups(),
          .kv_tokens = std::max(0.0, kFew + left / of_token)};
}

}  // namespace moeline

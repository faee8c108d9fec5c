#include "experiments/timeline_page/resource_use.hpp"

#include <cmath>
#include <map>

namespace moeline {
namespace {

using Steps = std::vector<std::pair<Time, double>>;

struct Held {
  double sms = 0, speed = 0;
};

// The sum of what all tasks take of one resource, as it changes.
class Taken {
 public:
  void add(Time at, double amount) {
    if (amount == 0) return;
    sum_ += amount;
    if (steps_.empty() || steps_.back().first != at) {
      steps_.emplace_back(at, sum_);
    } else {
      steps_.back().second = sum_;
    }
  }
  [[nodiscard]] const Steps& steps() const { return steps_; }

 private:
  double sum_ = 0;
  Steps steps_;
};

// Means over `count` equal times up to `end`.
Steps means(const Steps& steps, Time end, std::size_t count) {
  const auto bound = [&](std::size_t k) {
    return end * static_cast<std::int64_t>(k) / static_cast<std::int64_t>(count);
  };
  Steps result;
  std::size_t next = 0;
  double value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    Time at = bound(i);
    for (; next < steps.size() && steps[next].first < bound(i + 1); ++next) {
      sum += value * to_us(steps[next].first - at);
      at = steps[next].first;
      value = steps[next].second;
    }
    sum += value * to_us(bound(i + 1) - at);
    result.emplace_back(bound(i), sum / to_us(bound(i + 1) - bound(i)));
  }
  return result;
}

// The steps themselves inside `exact`, their means outside.
Steps thinned(const Steps& steps, Time end, std::size_t count, const Interval& exact) {
  Steps result;
  for (const auto& mean : means(steps, end, count)) {
    if (mean.first >= exact.start && mean.first < exact.end) continue;
    if (mean.first >= exact.end && (result.empty() || result.back().first < exact.start)) {
      for (const auto& step : steps) {
        if (step.first >= exact.start && step.first < exact.end) result.push_back(step);
      }
    }
    result.push_back(mean);
  }
  return result;
}

// Steps that differ where they are written, in thousandths of the capacity.
Steps without_repetitions(const Steps& steps, double capacity) {
  Steps kept;
  for (const auto& step : steps) {
    const bool same = !kept.empty() &&
                      std::llround(1000 * kept.back().second / capacity) == std::llround(1000 * step.second / capacity);
    if (!same) kept.push_back(step);
  }
  return kept;
}

}  // namespace

std::vector<ResourceUse> resource_uses(const TaskGraph& graph, const Timeline& timeline,
                                       const std::set<std::uint32_t>& ranks, std::size_t most_steps,
                                       const CloseUp& close_up) {
  std::map<std::pair<std::uint32_t, ResourceId>, Taken> taken;
  std::map<TaskId, Held> running;
  for (const Change& change : timeline.changes) {
    const std::uint32_t rank = graph.streams()[graph.label(change.task).stream].rank;
    if (!ranks.contains(rank)) continue;
    Held& held = running[change.task];
    const ResourceId pool = graph.task(change.task).pool;
    if (pool != kNoPool) taken[{rank, pool}].add(change.at, change.sms - held.sms);
    for (const Usage& usage : graph.usages(change.task)) {
      taken[{rank, usage.link}].add(change.at, usage.rate * (change.speed - held.speed));
    }
    held = {change.sms, change.speed};
    if (change.sms == 0 && change.speed == 0) running.erase(change.task);
  }
  std::vector<ResourceUse> uses;
  for (const auto& [key, of_resource] : taken) {
    const Resource& resource = graph.resources()[key.second];
    Steps steps = without_repetitions(of_resource.steps(), resource.capacity);
    if (steps.size() > most_steps) {
      const Interval exact = key.first == close_up.rank ? close_up.time : Interval{};
      steps = without_repetitions(thinned(steps, timeline.makespan, most_steps, exact), resource.capacity);
    }
    if (steps.size() > 1) uses.push_back({key.first, resource.name, resource.capacity, std::move(steps)});
  }
  return uses;
}

}  // namespace moeline

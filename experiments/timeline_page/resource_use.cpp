#include "experiments/timeline_page/resource_use.hpp"

#include <cmath>
#include <map>

namespace moeline {
namespace {

using Step = std::pair<Time, double>;
using Steps = std::vector<Step>;

// Hands out the area below the steps, from instant to instant.
class Area {
 public:
  explicit Area(const Steps& steps) : steps_(steps), at_(steps.front().first) {}

  // Unit of the steps x us, since the last call. REQUIRES: `until` grows.
  double until(Time until) {
    double sum = 0;
    for (; next_ < steps_.size() && steps_[next_].first < until; ++next_) {
      sum += value_ * to_us(steps_[next_].first - at_);
      at_ = steps_[next_].first;
      value_ = steps_[next_].second;
    }
    sum += value_ * to_us(until - at_);
    at_ = until;
    return sum;
  }

 private:
  const Steps& steps_;
  Time at_;
  double value_ = 0;
  std::size_t next_ = 0;
};

Steps means(const Steps& steps, Time end, std::size_t count) {
  const Time start = steps.front().first;
  const auto bound = [&](std::size_t k) {
    return start + from_us(to_us(end - start) * static_cast<double>(k) / static_cast<double>(count));
  };
  Area area(steps);
  Steps result;
  for (std::size_t i = 0; i < count && bound(i) < bound(i + 1); ++i) {
    result.emplace_back(bound(i), area.until(bound(i + 1)) / to_us(bound(i + 1) - bound(i)));
  }
  return result;
}

bool is_inside(const Step& step, const Interval& interval) {
  return step.first >= interval.start && step.first < interval.end;
}

// Those of `outside` but inside the interval those of `inside`. Both by time.
Steps spliced(const Steps& outside, const Steps& inside, const Interval& interval) {
  Steps result;
  for (const Step& step : outside) {
    if (step.first < interval.start) result.push_back(step);
  }
  for (const Step& step : inside) {
    if (is_inside(step, interval)) result.push_back(step);
  }
  for (const Step& step : outside) {
    if (step.first >= interval.start && !is_inside(step, interval)) result.push_back(step);
  }
  return result;
}

Steps without_repetitions(const Steps& steps, double capacity) {
  const auto written = [&](const Step& step) { return std::llround(kUseUnits * step.second / capacity); };
  Steps kept;
  for (const Step& step : steps) {
    if (kept.empty() || written(kept.back()) != written(step)) kept.push_back(step);
  }
  return kept;
}

}  // namespace

void thin(ResourceUse& use, Time end, std::size_t most_steps, const Interval& exact) {
  use.taken = without_repetitions(use.taken, use.capacity);
  if (use.taken.size() <= most_steps) return;
  use.taken = without_repetitions(spliced(means(use.taken, end, most_steps), use.taken, exact), use.capacity);
}

namespace {

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
  [[nodiscard]] const std::vector<std::pair<Time, double>>& steps() const { return steps_; }

 private:
  double sum_ = 0;
  std::vector<std::pair<Time, double>> steps_;
};

}  // namespace

std::vector<ResourceUse> resource_uses(const TaskGraph& graph, const Timeline& timeline,
                                       const std::set<std::uint32_t>& ranks) {
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
    if (!of_resource.steps().empty()) {
      uses.push_back({key.first, resource.name, resource.capacity, of_resource.steps()});
    }
  }
  return uses;
}

}  // namespace moeline

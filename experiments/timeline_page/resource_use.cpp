#include "experiments/timeline_page/resource_use.hpp"

#include <map>

namespace moeline {
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

// Small graphs, written the way the claims about them read.
#pragma once

#include <string>
#include <vector>

#include "engine/simulate.hpp"

namespace moeline::testing {

/// One rank with a pool of 132 SMs, and links as needed.
class SmallGraph {
 public:
  explicit SmallGraph(int sms = 132) : pool_(draft_.add_pool("SMs", sms)) {}

  ResourceId link(const std::string& name, double capacity) { return draft_.add_link(name, capacity); }
  ResourceId pool(const std::string& name, int sms) { return draft_.add_pool(name, sms); }

  TaskId resident(int sms, double solo_us, double ready_us = 0, std::vector<Usage> usages = {}) {
    return held(Hold::resident, pool_, sms, solo_us, ready_us, usages);
  }
  TaskId elastic(int sms, double solo_us, double ready_us = 0, std::vector<Usage> usages = {}) {
    return held(Hold::elastic, pool_, sms, solo_us, ready_us, usages);
  }
  TaskId held(Hold hold, ResourceId pool, int sms, double solo_us, double ready_us = 0,
              const std::vector<Usage>& usages = {}) {
    return add(task(hold, pool, sms, solo_us, ready_us), usages);
  }
  /// One whose neighbours slow it down, and one that slows its neighbours down.
  TaskId disturbed(double to_speed, ResourceId pool, int sms, double solo_us, const std::vector<Usage>& usages = {}) {
    Task disturbed = task(Hold::resident, pool, sms, solo_us, 0);
    disturbed.disturbed_speed = to_speed;
    return add(disturbed, usages);
  }
  TaskId disturbing(Hold hold, ResourceId pool, int sms, double solo_us, double ready_us = 0) {
    Task disturbing = task(hold, pool, sms, solo_us, ready_us);
    disturbing.disturbs = true;
    return add(disturbing, {});
  }
  [[nodiscard]] ResourceId own() const { return pool_; }
  /// Host work, a join, a transfer by copy engines: holds no SMs.
  TaskId plain(double solo_us, double delay_us = 0, const std::vector<Usage>& usages = {}) {
    Task task;
    task.solo = from_us(solo_us);
    task.delay = from_us(delay_us);
    return draft_.add(task, "task " + std::to_string(draft_.size()), usages);
  }

  TaskGraphDraft& edges() { return draft_; }
  [[nodiscard]] TaskGraph freeze() { return TaskGraph(std::move(draft_)); }
  [[nodiscard]] Timeline run() { return simulate(freeze(), {.record_changes = true}); }

 private:
  static Task task(Hold hold, ResourceId pool, int sms, double solo_us, double ready_us) {
    Task task;
    task.solo = from_us(solo_us);
    task.delay = from_us(ready_us);
    task.pool = pool;
    task.sms = static_cast<std::uint16_t>(sms);
    task.hold = hold;
    return task;
  }
  TaskId add(const Task& task, const std::vector<Usage>& usages) {
    return draft_.add(task, "task " + std::to_string(draft_.size()), usages);
  }

  TaskGraphDraft draft_;
  ResourceId pool_;
};

[[nodiscard]] inline double start_us(const Timeline& timeline, TaskId task) {
  return to_us(timeline.spans[task].start);
}
[[nodiscard]] inline double end_us(const Timeline& timeline, TaskId task) { return to_us(timeline.spans[task].end); }

}  // namespace moeline::testing

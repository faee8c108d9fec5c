#include "experiments/explain/replay_items.hpp"

#include <algorithm>

namespace moeline {
namespace {

double in_ps(Time time) { return static_cast<double>(time.count()); }

bool is_host(const TaskGraph& graph, TaskId id) { return graph.task_class(id).role == Role::host; }

// A delay holds more than that where a kernel keeps a distance, or before the host's first launch.
double gap_share(const ReplayGraph& replay, TaskId id) {
  const Time delay = replay.graph.task(id).delay;
  return delay > Time::zero() ? in_ps(std::chrono::nanoseconds(replay.gap_ns[id])) / in_ps(delay) : 0;
}

double of_gap(const ReplayGraph& replay, const Gradient& gradient, TaskId id) {
  return gradient.delay[id] * in_ps(std::chrono::nanoseconds(replay.gap_ns[id]));
}

float left_of_delay(const ReplayGraph& replay, TaskId id, double left) {
  return static_cast<float>(1 - (1 - left) * gap_share(replay, id));
}

Item host_item(const ReplayGraph& replay, const Gradient& gradient, Time span) {
  Item item{.what = "host"};
  for (TaskId id = 0; id < replay.graph.size(); ++id) {
    if (!is_host(replay.graph, id)) continue;
    const double of_run = gradient.solo[id] * in_ps(replay.graph.task(id).solo);
    item.elasticity += (of_run + of_gap(replay, gradient, id)) / in_ps(span);
  }
  item.shorten = [&replay](double left, Factors& factors) {
    for (TaskId id = 0; id < replay.graph.size(); ++id) {
      if (!is_host(replay.graph, id)) continue;
      factors.run[id] = static_cast<float>(left);
      factors.delay[id] = left_of_delay(replay, id, left);
    }
  };
  return item;
}

Item gaps_item(const ReplayGraph& replay, const Gradient& gradient, Time span) {
  Item item{.what = "gaps"};
  for (TaskId id = 0; id < replay.graph.size(); ++id) {
    if (!is_host(replay.graph, id)) item.elasticity += of_gap(replay, gradient, id) / in_ps(span);
  }
  item.shorten = [&replay](double left, Factors& factors) {
    for (TaskId id = 0; id < replay.graph.size(); ++id) {
      if (!is_host(replay.graph, id)) factors.delay[id] = left_of_delay(replay, id, left);
    }
  };
  return item;
}

// What replay has no name for, or has under another one.
bool is_of_simulations(const Item& item) {
  return item.what == "launch_gap" || item.what == "class:host" || item.what == "kernel:launch" ||
         item.what == "phase:";
}

}  // namespace

std::vector<Item> replay_items(const ReplayGraph& replay, const Gradient& gradient, Time span) {
  std::vector<Item> items = items_of(replay.graph, gradient, span, {});
  std::erase_if(items, is_of_simulations);
  items.push_back(host_item(replay, gradient, span));
  items.push_back(gaps_item(replay, gradient, span));
  return items;
}

}  // namespace moeline

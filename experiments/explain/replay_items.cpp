#include "experiments/explain/replay_items.hpp"

#include <algorithm>

namespace moeline {
namespace {

double in_ps(Time time) { return static_cast<double>(time.count()); }

bool is_host(const TaskGraph& graph, TaskId id) { return graph.task_class(id).role == Role::host; }

Item host_item(const TaskGraph& graph, const Gradient& gradient, Time span) {
  Item item{.what = "host"};
  for (TaskId id = 0; id < graph.size(); ++id) {
    if (!is_host(graph, id)) continue;
    const Task& task = graph.task(id);
    item.elasticity += (gradient.solo[id] * in_ps(task.solo) + gradient.delay[id] * in_ps(task.delay)) / in_ps(span);
  }
  item.shorten = [&graph](double left, Factors& factors) {
    for (TaskId id = 0; id < graph.size(); ++id) {
      if (is_host(graph, id)) factors.run[id] = factors.delay[id] = static_cast<float>(left);
    }
  };
  return item;
}

// A delay holds more than a gap where its kernel keeps a distance.
double gap_share(const ReplayGraph& replay, TaskId id) {
  const Time delay = replay.graph.task(id).delay;
  return delay > Time::zero() ? in_ps(std::chrono::nanoseconds(replay.gap_ns[id])) / in_ps(delay) : 0;
}

Item gaps_item(const ReplayGraph& replay, const Gradient& gradient, Time span) {
  Item item{.what = "gaps"};
  for (TaskId id = 0; id < replay.graph.size(); ++id) {
    item.elasticity += gradient.delay[id] * in_ps(std::chrono::nanoseconds(replay.gap_ns[id])) / in_ps(span);
  }
  item.shorten = [&replay](double left, Factors& factors) {
    for (TaskId id = 0; id < replay.graph.size(); ++id) {
      factors.delay[id] = static_cast<float>(1 - (1 - left) * gap_share(replay, id));
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
  items.push_back(host_item(replay.graph, gradient, span));
  items.push_back(gaps_item(replay, gradient, span));
  return items;
}

}  // namespace moeline

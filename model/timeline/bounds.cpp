#include "timeline/bounds.hpp"

#include <algorithm>

namespace moeline {
namespace {

// Every event as early as its chain allows.
Time longest_path(const TaskGraph& graph) {
  std::vector<Time> at(2 * graph.size());
  Time last{};
  for (const EventId event : graph.topological_order()) {
    const Task& task = graph.task(task_of(event));
    if (is_start(event)) at[event] += task.delay;  // what it waited for came before
    for (const EventId after : graph.successors(event)) {
      const bool own_end = after == end_of(task_of(event)) && is_start(event);
      at[after] = std::max(at[after], at[event] + (own_end ? task.solo : Time::zero()));
    }
    last = std::max(last, at[event]);
  }
  return last;
}

// By resource: us of it all, if it did nothing else.
std::vector<double> busy_us(const TaskGraph& graph) {
  std::vector<double> busy(graph.resources().size(), 0);
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.task(id);
    const double us = to_us(task.solo);
    if (task.pool != kNoPool) busy[task.pool] += us * task.sms / graph.resources()[task.pool].capacity;
    for (const Usage& usage : graph.usages(id)) {
      busy[usage.link] += us * usage.rate / graph.resources()[usage.link].capacity;
    }
  }
  return busy;
}

// A sum of many roundings must not pass what it bounds.
Time rounded_down(double us) {
  constexpr double kRounding = 1e-9;
  return from_us(us * (1 - kRounding));
}

}  // namespace

std::vector<Bound> lower_bounds(const TaskGraph& graph) {
  std::vector<Bound> bounds{{"path", longest_path(graph)}};
  const std::vector<double> busy = busy_us(graph);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (busy[i] > 0) bounds.push_back({graph.resources()[i].name, rounded_down(busy[i])});
  }
  return bounds;
}

}  // namespace moeline

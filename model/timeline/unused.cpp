#include "timeline/unused.hpp"

#include <algorithm>

namespace moeline {
namespace {

double demand(TaskId id, ResourceId resource, const TaskGraph& graph) {
  double amount = graph.task(id).pool == resource ? graph.task(id).sms : 0;
  for (const Usage& usage : graph.usages(id)) amount += usage.link == resource ? usage.rate : 0;
  return amount;
}

// Share of the resource that is at work, from an instant on.
struct LinkUse {
  Time from{};
  double share = 0;
};

std::vector<LinkUse> uses_of(const TaskGraph& graph, const Timeline& timeline, ResourceId resource) {
  std::vector<LinkUse> uses{{}};
  std::vector<double> speeds(graph.size(), 0);
  double share = 0;
  for (const Change& change : timeline.changes) {
    const double amount = demand(change.task, resource, graph);
    if (amount == 0) continue;
    share += amount * (change.speed - speeds[change.task]) / graph.resources()[resource].capacity;
    speeds[change.task] = change.speed;
    if (uses.back().from != change.at) uses.push_back({change.at, share});
    uses.back().share = share;
  }
  return uses;
}

}  // namespace

std::vector<Time> unused(const TaskGraph& graph, const Timeline& timeline, ResourceId resource,
                         const std::vector<PathStep>& path) {
  const std::vector<LinkUse> uses = uses_of(graph, timeline, resource);
  std::vector<Time> idle;
  std::size_t now = 0;
  for (const PathStep& step : path) {
    double ps = 0;
    for (Time at = step.start; at < step.end;) {
      while (now + 1 < uses.size() && uses[now + 1].from <= at) ++now;
      const Time until = now + 1 < uses.size() ? std::min(step.end, uses[now + 1].from) : step.end;
      ps += static_cast<double>((until - at).count()) * (1 - uses[now].share);
      at = until;
    }
    idle.push_back(Time(static_cast<std::int64_t>(ps)));
  }
  return idle;
}

}  // namespace moeline

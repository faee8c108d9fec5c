#include "timeline/bounds.hpp"

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

namespace {

// The longest chains before and after every event, each task as fast as alone.
struct Chains {
  std::vector<Time> until, after;  // by event: from the beginning until it, from it to the end
  Time longest{};
};

// From an event until one that waits for it; a start also waits for its delay.
Time between(EventId event, EventId after, const TaskGraph& graph) {
  if (is_start(after)) return graph.task(task_of(after)).delay;
  const bool own_end = after == end_of(task_of(event)) && is_start(event);
  return own_end ? graph.task(task_of(event)).solo : Time::zero();
}

Chains chains_of(const TaskGraph& graph) {
  Chains chains{std::vector<Time>(2 * graph.size()), std::vector<Time>(2 * graph.size())};
  for (TaskId id = 0; id < graph.size(); ++id) chains.until[start_of(id)] = graph.task(id).delay;
  const std::vector<EventId> order = graph.topological_order();
  for (const EventId event : order) {
    for (const EventId after : graph.successors(event)) {
      chains.until[after] = std::max(chains.until[after], chains.until[event] + between(event, after, graph));
    }
    chains.longest = std::max(chains.longest, chains.until[event]);
  }
  for (auto event = order.rbegin(); event != order.rend(); ++event) {
    for (const EventId after : graph.successors(*event)) {
      chains.after[*event] = std::max(chains.after[*event], between(*event, after, graph) + chains.after[after]);
    }
  }
  return chains;
}

// Of a resource: how long it is at work, and the least that comes before and after all of that.
struct Use {
  double busy_us = 0;
  Time before = Time::max(), after = Time::max();

  void add(double us, Time starts, Time left) {
    if (us <= 0) return;
    busy_us += us;
    before = std::min(before, starts);
    after = std::min(after, left);
  }
};

std::vector<Use> uses_of(const TaskGraph& graph, const Chains& chains) {
  std::vector<Use> uses(graph.resources().size());
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.task(id);
    const auto add = [&](ResourceId resource, double amount) {
      uses[resource].add(to_us(task.solo) * amount / graph.resources()[resource].capacity, chains.until[start_of(id)],
                         chains.after[end_of(id)]);
    };
    if (task.pool != kNoPool) add(task.pool, task.sms);
    for (const Usage& usage : graph.usages(id)) add(usage.link, usage.rate);
  }
  return uses;
}

// A sum of many roundings must not pass what it bounds.
Time rounded_down(double us) {
  constexpr double kRounding = 1e-9;
  return from_us(us * (1 - kRounding));
}

}  // namespace

std::vector<Bound> lower_bounds(const TaskGraph& graph, Time since) {
  const Chains chains = chains_of(graph);
  std::vector<Bound> bounds{{"path", chains.longest - since}};
  const std::vector<Use> uses = uses_of(graph, chains);
  for (ResourceId i = 0; i < uses.size(); ++i) {
    if (uses[i].busy_us == 0) continue;
    const Time before = std::max(Time::zero(), uses[i].before - since);
    bounds.push_back({graph.resources()[i].name, rounded_down(uses[i].busy_us + to_us(before + uses[i].after)), i,
                      rounded_down(uses[i].busy_us)});
  }
  return bounds;
}

}  // namespace moeline

#include "experiments/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "experiments/explain/hardware_items.hpp"

namespace moeline {
namespace {

// What the span holds of the path: before its first kernel there are launches.
std::vector<PathStep> within(std::vector<PathStep> path, Time start) {
  std::erase_if(path, [&](const PathStep& step) { return step.end <= start; });
  if (!path.empty()) path.front().start = std::max(path.front().start, start);
  return path;
}

// As the fields of a scenario call them.
std::string key_of(const std::string& resource) {
  static const std::map<std::string, std::string> kKeys = {
      {"SMs", "sm_time"}, {"HBM", "hbm"}, {"NVLink", "nvlink"}, {"NIC", "nic"}};
  const auto found = kKeys.find(resource.substr(0, resource.find(' ')));
  return found == kKeys.end() ? resource : found->second;
}

// Of several ranks' resources, and of both directions of a link, the greatest; the largest bound first.
std::vector<Bound> greatest_by_key(const std::vector<Bound>& bounds) {
  std::vector<Bound> kept;
  for (const Bound& bound : bounds) {
    const std::string key = key_of(bound.what);
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Bound& b) { return b.what == key; });
    if (same == kept.end()) {
      kept.push_back({key, bound.time});
    } else {
      same->time = std::max(same->time, bound.time);
    }
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Bound& a, const Bound& b) { return a.time > b.time; });
  return kept;
}

// The tasks that stand for ranks that are not simulated.
std::vector<bool> stand_ins_of(const Program& program) {
  std::vector<bool> stand_ins(program.graph.size(), false);
  for (const Meeting& meeting : program.meetings) {
    if (meeting.wait != kNoTask) stand_ins[meeting.wait] = true;
  }
  return stand_ins;
}

// `of_machine`: what the span answers to beside the graph's own times.
using MoreItems = std::function<std::vector<Item>(const Gradient&)>;

std::vector<SpanSensitivity> sensitivities_of(const TaskGraph& graph, const Timeline& timeline, Time span,
                                              const std::vector<bool>& stand_ins, const MoreItems& of_machine) {
  const Time start = timeline.makespan - span;
  const History history(graph, timeline);
  const Gradient gradient = span_gradient(graph, timeline, history, start);
  std::vector<Item> items = items_of(graph, gradient, span, stand_ins);
  std::ranges::move(of_machine(gradient), std::back_inserter(items));
  return span_sensitivities(graph, std::move(items), Shortened(graph, timeline, history, start));
}

Explanation explain(const TaskGraph& graph, const Timeline& timeline, Time span, const std::vector<bool>& stand_ins,
                    const MoreItems& of_machine) {
  const Time start = timeline.makespan - span;
  Explanation e{.start = start, .span = span};
  e.path = within(critical_path(graph, timeline, stand_ins), start);
  e.blame = blame(graph, e.path);
  e.sensitivities = sensitivities_of(graph, timeline, span, stand_ins, of_machine);
  std::vector<Bound> bounds = lower_bounds(graph, start);
  e.period = least_period(graph);
  if (e.period) bounds.push_back({"cycle", e.period->all});
  e.bounds = greatest_by_key(bounds);
  return e;
}

}  // namespace

std::string title_of(const Blame& blame) {
  return fmt::format("{}{}{}: {}", blame.task_class, blame.phase.empty() ? "" : " in ", blame.phase,
                     name_of(blame.reason));
}

Explanation explain(const Run& run) {
  return explain(run.program.graph, run.timeline, run.metrics.span, stand_ins_of(run.program),
                 [&](const Gradient& gradient) { return hardware_items(run, gradient); });
}

Explanation explain(const ReplayGraph& replay, const Timeline& timeline) {
  return explain(replay.graph, timeline, gpu_span(replay, timeline), {},
                 [](const Gradient&) { return std::vector<Item>{}; });
}

}  // namespace moeline

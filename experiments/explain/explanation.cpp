#include "experiments/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "experiments/explain/replay_items.hpp"
#include "experiments/explain/sensitivity.hpp"
#include "timeline/bounds.hpp"
#include "timeline/shortened.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

// What the span holds of the path: before its first kernel there are launches.
std::vector<PathStep> within(std::vector<PathStep> path, Time start) {
  std::erase_if(path, [&](const PathStep& step) { return step.end <= start; });
  if (!path.empty()) path.front().start = std::max(path.front().start, start);
  return path;
}

// Of several ranks' resources, and of both directions of a link, the greatest; the largest bound first.
std::vector<Bound> greatest_by_key(const std::vector<Bound>& bounds) {
  std::vector<Bound> kept;
  for (const Bound& bound : bounds) {
    const std::string key = key_of_resource(bound.what);
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Bound& b) { return b.what == key; });
    if (same == kept.end()) {
      kept.push_back({key, bound.time, bound.resource});
    } else {
      if (bound.time > same->time) *same = {key, bound.time, bound.resource};
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

// The steps by what they are, each with the time for which the resource did nothing.
std::vector<Blame> idle_of(ResourceId resource, const TaskGraph& graph, const Timeline& timeline,
                           const std::vector<PathStep>& path) {
  const std::vector<Time> idle = unused(graph, timeline, resource, path);
  std::vector<PathStep> parts = path;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].end = parts[i].start + idle[i];
  return blame(graph, parts);
}

using Place = std::pair<std::string, std::string>;  // phase, kernel

std::vector<Alternative> alternatives_of(const TaskGraph& graph, const std::vector<Time>& slack,
                                         const std::vector<PathStep>& path) {
  const auto place_of = [&](TaskId id) {
    return Place{phase_of({.task = id}, graph), short_kernel_name(graph.task_name(id))};
  };
  struct Alike {
    TaskId first = 0;
    std::vector<Time> slack;
  };
  const std::vector<std::uint32_t> phases = phase_names(graph);
  std::unordered_map<std::uint64_t, Alike> by_name;  // texts are made once for each
  for (TaskId id = 0; id < graph.size(); ++id) {
    if (!graph.classes().empty() && graph.task_class(id).role == Role::host) continue;
    const std::uint64_t phase = phases.empty() ? 0 : phases[graph.label(id).phase];
    by_name.try_emplace(phase << 32U | graph.label(id).name, Alike{id, {}}).first->second.slack.push_back(slack[id]);
  }
  std::map<Place, std::vector<Time>> places;
  for (const auto& [name, alike] : by_name) {
    std::vector<Time>& all = places[place_of(alike.first)];
    all.insert(all.end(), alike.slack.begin(), alike.slack.end());
  }
  std::set<Place> on_path;
  for (const PathStep& step : path) on_path.insert(place_of(step.task));
  std::vector<Alternative> list;
  for (auto& [place, times] : places) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    if (*middle > Time::zero() || !on_path.contains(place)) list.push_back({place.first, place.second, *middle});
  }
  std::ranges::stable_sort(list, {}, &Alternative::slack);
  std::set<std::string> phases_seen;  // kernels of a phase mostly follow each other, and have the same slack
  std::erase_if(list, [&](const Alternative& a) { return !phases_seen.insert(a.phase).second; });
  return list;
}

// The pieces of one event are one kernel: what is on the path of them says that it is.
std::vector<Time> slack_of_events(std::vector<Time> slack, const std::vector<std::int64_t>& event_of) {
  std::unordered_map<std::int64_t, Time> least;
  for (TaskId id = 0; id < event_of.size(); ++id) {
    if (event_of[id] < 0) continue;
    Time& known = least.try_emplace(event_of[id], slack[id]).first->second;
    known = std::min(known, slack[id]);
  }
  for (TaskId id = 0; id < event_of.size(); ++id) {
    if (event_of[id] >= 0) slack[id] = least.at(event_of[id]);
  }
  return slack;
}

void add_bounds(const TaskGraph& graph, const Timeline& timeline, Explanation& e) {
  std::vector<Bound> bounds = lower_bounds(graph, e.start);
  e.period = least_period(graph);
  if (e.period) bounds.push_back({"cycle", e.period->all});
  e.bounds = greatest_by_key(bounds);
  const auto busiest = std::ranges::max_element(bounds, {}, &Bound::busy);
  if (busiest->busy == Time::zero()) return;
  e.idle_of = key_of_resource(busiest->what);
  e.idle = idle_of(busiest->resource, graph, timeline, e.path);
}

// What the span answers to.
using Items = std::function<std::vector<Item>(const Gradient&)>;

// `unexplained`: delays from that length on. `event_of`: of tasks that are pieces of one thing, which; empty: of none.
Explanation explain(const TaskGraph& graph, const Timeline& timeline, Time span, const std::vector<bool>& stand_ins,
                    const Items& items_by, const Progress& progress, Time unexplained = Time::max(),
                    const std::vector<std::int64_t>& event_of = {}) {
  constexpr std::size_t kParts = 5;
  ProgressCount part_done(progress, "parts of the explanation", kParts);
  const Time start = timeline.makespan - span;
  const History history(graph, timeline);
  const Gradient gradient = span_gradient(graph, timeline, history, start);
  std::vector<Item> items = items_by(gradient);
  part_done();

  Explanation e{.start = start, .span = span};
  e.path = by_resource(within(critical_path(graph, timeline, stand_ins), start), timeline);
  mark_unexplained(graph, unexplained, e.path);
  e.blame = blame(graph, e.path);
  part_done();
  e.alternatives = alternatives_of(graph, slack_of_events(slack(graph, timeline, history), event_of), e.path);
  part_done();
  e.sensitivities = span_sensitivities(graph, std::move(items), Shortened(graph, timeline, history, start));
  part_done();
  add_bounds(graph, timeline, e);
  part_done();
  return e;
}

}  // namespace

std::string key_of_resource(const std::string& name) {
  static const std::map<std::string, std::string> kKeys = {
      {"SMs", "sm_time"}, {"HBM", "hbm"}, {"NVLink", "nvlink"}, {"NIC", "nic"}, {"host", "host"}};
  const auto found = kKeys.find(name.substr(0, name.find(' ')));
  return found == kKeys.end() ? name : found->second;
}

std::string title_of(const Blame& blame) {
  const std::string by = blame.by.empty() ? "" : " on " + blame.by;
  return fmt::format("{}{}{}: {}{}", blame.task_class, blame.phase.empty() ? "" : " in ", blame.phase,
                     name_of(blame.reason), by.substr(0, by.rfind(" GB/s")));
}

std::vector<Blame> blame_of(const Run& run) {
  const TaskGraph& graph = run.program.graph;
  const Time start = run.timeline.makespan - run.explained_span();
  return blame(graph, within(critical_path(graph, run.timeline, stand_ins_of(run.program)), start));
}

Explanation explain(const Run& run, const Progress& progress) {
  const std::vector<bool> stand_ins = stand_ins_of(run.program);
  const auto items = [&](const Gradient& gradient) {
    std::vector<Item> found = items_of(run.program.graph, gradient, run.explained_span(), stand_ins);
    std::ranges::move(hardware_items(run, gradient), std::back_inserter(found));
    return found;
  };
  Explanation e = explain(run.program.graph, run.timeline, run.explained_span(), stand_ins, items, progress);
  e.schedule = run.setup.scenario.schedule;
  if (is_by_slot(run)) e.sensitivities.clear();
  if (!run.has_given_slots()) e.known = known_time(run);
  return e;
}

bool is_by_slot(const Run& run) { return run.step() != nullptr && run.setup.scenario.level == Level::by_slot; }

Explanation explain(const ReplayGraph& replay, const Timeline& timeline, const Progress& progress) {
  const Time span = gpu_span(replay, timeline);
  const auto items = [&](const Gradient& gradient) { return replay_items(replay, gradient, span); };
  return explain(replay.graph, timeline, span, {}, items, progress, std::chrono::nanoseconds(kUnexplainedNs),
                 replay.event_of);
}

}  // namespace moeline

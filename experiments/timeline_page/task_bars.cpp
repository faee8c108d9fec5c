#include "experiments/timeline_page/task_bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "schedules/lowering/kernel_detail.hpp"

namespace moeline {

std::uint32_t rank_of(const TaskGraph& graph, TaskId task) { return graph.streams()[graph.label(task).stream].rank; }

bool is_visible(const TaskGraph& graph, const Timeline& timeline, TaskId task) {
  const Span& span = timeline.spans[task];
  return graph.task_class(task).role != Role::host || span.end > span.start;
}

std::vector<TaskId> visible_tasks(const TaskGraph& graph, const Timeline& timeline,
                                  const std::set<std::uint32_t>& ranks, Time from) {
  const std::vector<Span>& spans = timeline.spans;
  std::vector<TaskId> tasks;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const bool wanted = spans[task].start >= from && ranks.contains(rank_of(graph, task));
    if (wanted && is_visible(graph, timeline, task)) tasks.push_back(task);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return spans[a].start < spans[b].start; });
  return tasks;
}

std::map<std::uint16_t, std::uint32_t> add_lanes(const TaskGraph& graph, const std::vector<TaskId>& tasks,
                                                 TimelineView& view) {
  std::set<std::uint16_t> used;
  for (const TaskId task : tasks) used.insert(graph.label(task).stream);
  std::vector<std::uint16_t> streams(used.begin(), used.end());
  const auto place = [&](std::uint16_t stream) {
    const Stream& s = graph.streams()[stream];
    return std::tuple(s.rank, s.role == Role::host, s.id);
  };
  std::stable_sort(streams.begin(), streams.end(), [&](auto a, auto b) { return place(a) < place(b); });
  std::map<std::uint16_t, std::uint32_t> lanes;
  for (const std::uint16_t stream : streams) {
    const Stream& s = graph.streams()[stream];
    lanes[stream] = static_cast<std::uint32_t>(view.lanes.size());
    view.lanes.push_back({s.rank, s.role == Role::host ? "host, other ranks" : s.name});
  }
  return lanes;
}

namespace {

BarPhase phase_of(const TaskGraph& graph, TaskId task) {
  const Phase& phase = graph.phases()[graph.label(task).phase];
  return {phase.name, phase.layer, phase.micro_batch, ""};
}

}  // namespace

BarKind kind_of(const Run& run, TaskId task) {
  const TaskGraph& graph = run.program.graph;
  const TaskClass& task_class = graph.task_class(task);
  const std::string detail = task_class.role == Role::host ? "" : detail_of(run.program, *run.setup.prices, task);
  return {graph.task_name(task), task_class.name, detail, graph.task(task).sms, task_class.role == Role::communication};
}

void TaskBars::add(TaskId task, std::uint32_t lane) {
  const Span& span = timeline_.spans[task];
  Bar bar{.lane = lane, .kind = draft_.kind(kind_of(run_, task)), .start = span.start, .end = span.end};
  bar.phase = draft_.phase(phase_of(graph_, task));
  bar.alone = std::min(graph_.task(task).solo, span.end - span.start);
  bar.sms_wait = span.start - span.ready;
  entries_.push_back({bar, task});
}

void TaskBars::add_groups(const std::vector<Bar>& groups, std::vector<std::uint32_t> of_task) {
  std::vector<TaskId> first(groups.size(), kNoTask);
  for (TaskId task = 0; task < of_task.size(); ++task) {
    const std::uint32_t group = of_task[task];
    if (group == kNoGroup || graph_.task_class(task).role == Role::host) continue;
    TaskId& earliest = first[group];
    if (earliest == kNoTask || timeline_.spans[task].start < timeline_.spans[earliest].start) earliest = task;
  }
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (first[group] != kNoTask) entries_.push_back({groups[group], first[group], group});
  }
  group_bars_.assign(groups.size(), kNoBar);
  group_of_task_ = std::move(of_task);
}

void TaskBars::finish(const std::vector<PathStep>& path) {
  sort_entries();
  const Releases releases(graph_, timeline_);
  for (std::size_t i = 0; i < entries_.size(); ++i) set_releases(static_cast<std::int32_t>(i), releases);
  for (const Entry& entry : entries_) draft_.view.bars.push_back(entry.bar);
  add_path(path);
}

void TaskBars::sort_entries() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.bar.start != b.bar.start ? a.bar.start < b.bar.start : a.bar.lane < b.bar.lane;
  });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    (entry.group == kNoGroup ? task_bars_[entry.task] : group_bars_[entry.group]) = static_cast<std::int32_t>(i);
  }
}

std::int32_t TaskBars::group_bar(TaskId task) const {
  const std::uint32_t group = group_of_task_.empty() ? kNoGroup : group_of_task_[task];
  return group == kNoGroup ? kNoBar : group_bars_[group];
}

std::int32_t TaskBars::bar_of(TaskId task, bool by_group) const {
  return by_group || task_bars_[task] == kNoBar ? group_bar(task) : task_bars_[task];
}

Time TaskBars::at(EventId event) const {
  const Span& span = timeline_.spans[task_of(event)];
  return is_start(event) ? span.start : span.end;
}

// Back from `event` to one that says something: of another bar, or, to single tasks, of work that is not drawn. Joints
// of the graph lie between; to groups also messages that no group holds.
EventId TaskBars::drawn_before(EventId event, std::int32_t self, bool by_group, const Releases& releases) const {
  while (event != kNoEvent) {
    const TaskId task = task_of(event);
    const std::int32_t bar = bar_of(task, by_group);
    if (bar == self) return kNoEvent;
    if (bar != kNoBar || (!by_group && is_visible(graph_, timeline_, task))) return event;
    const EventId held = is_start(event) ? kNoEvent : releases.of_end(task);
    event = held != kNoEvent ? held : releases.of_start(task);
  }
  return kNoEvent;
}

BarEvent TaskBars::name(EventId event, bool by_group) {
  if (event == kNoEvent) return {};
  const TaskId task = task_of(event);
  const std::int32_t bar = bar_of(task, by_group);
  if (bar != kNoBar) {
    return {is_start(event) ? BarEvent::Of::start : BarEvent::Of::end, static_cast<std::uint32_t>(bar)};
  }
  const std::string text = fmt::format("the {} of {} in {} on rank {}", is_start(event) ? "start" : "end",
                                       graph_.task_name(task), phase_of(graph_, task).name, rank_of(graph_, task));
  return {BarEvent::Of::elsewhere, draft_.text(text)};
}

void TaskBars::set_releases(std::int32_t index, const Releases& releases) {
  auto& [bar, task, group] = entries_[static_cast<std::size_t>(index)];
  const bool by_group = group != kNoGroup;
  const EventId released = drawn_before(releases.of_start(task), index, by_group, releases);
  bar.released = name(released, by_group);
  bar.delay = released == kNoEvent ? graph_.task(task).delay : timeline_.spans[task].ready - at(released);
  if (!by_group) bar.held = name(drawn_before(releases.of_end(task), index, false, releases), false);
}

// Steps of one bar that follow each other are one stretch; of a group with the reasons of many tasks.
void TaskBars::add_path(const std::vector<PathStep>& path) {
  for (const bool by_group : {true, false}) {
    std::vector<PathStretch> stretches;
    for (const PathStep& step : path) {
      const std::int32_t bar = by_group ? group_bar(step.task) : task_bars_[step.task];
      if (bar == kNoBar) continue;
      const auto index = static_cast<std::uint32_t>(bar);
      const auto reason = static_cast<std::uint8_t>(step.reason);
      if (by_group && !stretches.empty() && stretches.back().bar == index && stretches.back().end == step.start) {
        stretches.back().end = step.end;
        if (stretches.back().reason != reason) stretches.back().reason = kManyReasons;
      } else {
        stretches.push_back({index, reason, step.start, step.end});
      }
    }
    draft_.view.path.insert(draft_.view.path.end(), stretches.begin(), stretches.end());
  }
}

}  // namespace moeline

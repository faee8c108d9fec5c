#include "experiments/timeline_page/run_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/resource_use.hpp"
#include "experiments/timeline_page/step_view.hpp"
#include "experiments/timeline_page/task_bars.hpp"
#include "experiments/timeline_page/task_lanes.hpp"
#include "experiments/timeline_page/thinned_use.hpp"

namespace moeline {
namespace {

// All of a pipeline; else rank 0, and the one that the end waited for most.
std::set<std::uint32_t> default_ranks(const Run& run, const Explanation& explanation) {
  const TaskGraph& graph = run.program.graph;
  if (run.is_pipeline()) return simulated_ranks(graph);
  std::map<std::uint32_t, Time> times;
  for (const PathStep& step : explanation.path) times[rank_of(graph, step.task)] += step.end - step.start;
  std::set<std::uint32_t> ranks = {0};
  const auto most =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != times.end()) ranks.insert(most->first);
  return ranks;
}

// Leaves the first ones where they are more than a page holds. The end of what is shown.
Time keep_fitting(const Timeline& timeline, std::vector<TaskId>& tasks, TimelineView& view) {
  if (tasks.size() <= kMostBars) return timeline.makespan;
  const Time end = timeline.spans[tasks[kMostBars]].start;
  view.left_out.push_back(fmt::format("The first {:.3f} of {:.3f} ms are shown: {} of {} kernels.", to_us(end) / 1e3,
                                      to_us(timeline.makespan) / 1e3, kMostBars, tasks.size()));
  tasks.resize(kMostBars);
  return end;
}

void add_uses(const Run& run, const std::set<std::uint32_t>& ranks, const CloseUp& close_up, TimelineView& view) {
  constexpr std::size_t kMostSteps = 40'000;  // of all resources together
  view.uses = resource_uses(run.program.graph, run.timeline, ranks);
  for (ResourceUse& use : view.uses) {
    thin(use, run.timeline.makespan, kMostSteps / view.uses.size(),
         use.rank == close_up.rank ? close_up.time : Interval{});
  }
}

TimelineView kernels_of(const Run& run, const Explanation& explanation, const std::set<std::uint32_t>& ranks) {
  const TaskGraph& graph = run.program.graph;
  ViewDraft draft("");
  TimelineView& view = draft.view;
  std::vector<TaskId> tasks = visible_tasks(graph, run.timeline, ranks);
  view.end = keep_fitting(run.timeline, tasks, view);
  view.ranks.assign(ranks.begin(), ranks.end());
  const auto lanes = add_lanes(graph, tasks, view);
  TaskBars bars(run, draft);
  for (const TaskId task : tasks) bars.add(task, lanes.at(graph.label(task).stream));
  bars.finish(explanation.path);
  const std::size_t all = simulated_ranks(graph).size();
  if (ranks.size() < all) {
    view.left_out.push_back(fmt::format("{} of {} simulated ranks are shown; --ranks chooses.", ranks.size(), all));
  }
  return std::move(view);
}

}  // namespace

std::set<std::uint32_t> simulated_ranks(const TaskGraph& graph) {
  std::set<std::uint32_t> ranks;
  for (const Stream& stream : graph.streams()) ranks.insert(stream.rank);
  return ranks;
}

TimelineView view_of(const Run& run, const Explanation& explanation, const std::set<std::uint32_t>& wanted) {
  const std::set<std::uint32_t> ranks = wanted.empty() ? default_ranks(run, explanation) : wanted;
  CloseUp close_up;
  TimelineView view = run.step() != nullptr ? slots_of(run, explanation, *ranks.begin(), close_up)
                                            : kernels_of(run, explanation, ranks);
  add_uses(run, {view.ranks.begin(), view.ranks.end()}, close_up, view);
  return view;
}

}  // namespace moeline

#include "experiments/timeline_page/run_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/explain/explanation.hpp"
#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/resource_use.hpp"
#include "experiments/timeline_page/task_bars.hpp"
#include "experiments/timeline_page/view.hpp"

namespace moeline {

// A whole step of training as a page draws it.

namespace {

/// Part of a timeline of one rank in which single kernels are shown.
struct CloseUp {
  std::uint32_t rank = 0;
  Interval time{};
};

static_assert(kNoGroup == kNoSlot, "slots are groups of tasks");

class StepView {
 public:
  explicit StepView(const Run& run) : run_(run), graph_(run.program.graph), draft_(""), bars_(run, draft_) {}

  void add_slots() {
    const StepReport& step = *run_.step();
    for (std::uint32_t rank = 0; rank < step.ranks.size(); ++rank) {
      draft_.view.ranks.push_back(rank);
      draft_.view.lanes.push_back({rank, "slots"});
    }
    std::vector<Bar> groups;
    for (std::size_t i = 0; i < run_.phases.size(); ++i) groups.push_back(slot_bar(i));
    const std::vector<std::uint32_t> slots = slots_of_phases(step.layout, graph_);
    std::vector<std::uint32_t> of_task(graph_.size());
    for (TaskId task = 0; task < graph_.size(); ++task) of_task[task] = slots[graph_.label(task).phase];
    add_end(of_task, groups);
    bars_.add_groups(groups, std::move(of_task));
    note("Of messages between ranks and of gradients that are reduced beside slots only the waits are shown.");
  }

  CloseUp add_kernels(std::uint32_t rank) {
    const Interval time = whole_slots(rank);
    std::vector<TaskId> tasks = visible_tasks(graph_, run_.timeline, {rank}, time.start);
    std::erase_if(tasks, [&](TaskId task) { return run_.timeline.spans[task].start >= time.end; });
    const auto lanes = add_lanes(graph_, tasks, draft_.view);
    for (const TaskId task : tasks) bars_.add(task, lanes.at(graph_.label(task).stream));
    draft_.view.window_name = "kernels";
    draft_.view.window = time;
    note(fmt::format("Kernels are shown of rank {} from {:.3f} to {:.3f} ms: {} of the step's {} tasks.", rank,
                     to_us(time.start) / 1e3, to_us(time.end) / 1e3, tasks.size(), graph_.size()));
    return {rank, time};
  }

  TimelineView finish(const Explanation& explanation) {
    bars_.finish(explanation.path);
    draft_.view.end = run_.timeline.makespan;
    return std::move(draft_.view);
  }

 private:
  void note(std::string text) { draft_.view.left_out.push_back(std::move(text)); }

  Bar slot_bar(std::size_t i) {
    const PhaseTimes& row = run_.phases[i];
    Bar bar{.lane = row.rank, .start = row.start, .end = row.end, .alone = row.end - row.start};
    bar.kind = draft_.kind({title_of(run_.step()->layout.slots[i].slot), row.phase, "", 0, false});
    bar.phase = draft_.phase({row.phase, row.layer, row.micro_batch, ""});
    return bar;
  }

  Bar end_bar(TaskId task) {
    const Phase& phase = graph_.phases()[graph_.label(task).phase];
    Bar bar{.lane = phase.rank, .start = run_.timeline.spans[task].start};
    bar.kind = draft_.kind(kind_of(run_, task));
    bar.phase = draft_.phase({phase.name, phase.layer, phase.micro_batch, ""});
    return bar;
  }

  // Phases after a rank's last slot: gradients that are left, optimizer, parameters.
  void add_end(std::vector<std::uint32_t>& of_task, std::vector<Bar>& groups) {
    std::vector<Time> last(run_.step()->ranks.size());
    for (const Bar& bar : groups) last[bar.lane] = std::max(last[bar.lane], bar.end);
    std::map<std::uint32_t, std::uint32_t> group_of_phase;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const Span& span = run_.timeline.spans[task];
      if (of_task[task] != kNoGroup || graph_.task_class(task).role == Role::host) continue;
      if (span.start < last[rank_of(graph_, task)]) continue;
      const std::uint32_t phase = graph_.label(task).phase;
      const auto [found, added] = group_of_phase.try_emplace(phase, static_cast<std::uint32_t>(groups.size()));
      if (added) groups.push_back(end_bar(task));
      Bar& bar = groups[found->second];
      bar.end = std::max(bar.end, span.end);
      bar.alone = bar.end - bar.start;
      of_task[task] = found->second;
    }
  }

  // From the middle one of a rank's slots to the end of the last before there are too many kernels.
  [[nodiscard]] Interval whole_slots(std::uint32_t rank) const {
    constexpr std::size_t kMostKernels = 3000;
    std::vector<const PhaseTimes*> slots;
    for (const PhaseTimes& slot : run_.phases) {
      if (slot.rank == rank) slots.push_back(&slot);
    }
    const Time from = slots[slots.size() / 2]->start;
    const std::vector<TaskId> tasks = visible_tasks(graph_, run_.timeline, {rank}, from);
    if (tasks.size() <= kMostKernels) return {from, run_.timeline.makespan};
    const Time limit = run_.timeline.spans[tasks[kMostKernels]].start;
    Time until = limit;
    for (const PhaseTimes* slot : slots) {
      if (slot->end > from && slot->end <= limit) until = slot->end;
    }
    return {from, until};
  }

  const Run& run_;
  const TaskGraph& graph_;
  ViewDraft draft_;
  TaskBars bars_;
};

/// Slots of all ranks, and what follows each rank's last one; where kernels were simulated, those of some slots in the
/// middle of `rank`, which is then the close-up. REQUIRES: the run is a whole step.
TimelineView slots_of(const Run& run, const Explanation& explanation, std::uint32_t rank, CloseUp& close_up) {
  StepView view(run);
  view.add_slots();
  if (run.setup.scenario.level != Level::by_slot) close_up = view.add_kernels(rank);
  return view.finish(explanation);
}

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

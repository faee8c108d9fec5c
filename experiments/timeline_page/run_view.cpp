#include "experiments/timeline_page/run_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "experiments/timeline_page/page.hpp"
#include "experiments/timeline_page/resource_use.hpp"
#include "experiments/timeline_page/task_bars.hpp"

namespace moeline {
namespace {

std::uint32_t rank_of(const TaskGraph& graph, TaskId task) { return graph.streams()[graph.label(task).stream].rank; }

// By rank, then stream, the host last.
std::vector<std::uint16_t> streams_of(const TaskGraph& graph, std::uint32_t rank) {
  std::vector<std::uint16_t> streams;
  for (std::uint16_t i = 0; i < graph.streams().size(); ++i) {
    if (graph.streams()[i].rank == rank) streams.push_back(i);
  }
  const auto place = [&](std::uint16_t i) {
    const Stream& stream = graph.streams()[i];
    return std::pair(stream.role == Role::host, stream.id);
  };
  std::stable_sort(streams.begin(), streams.end(), [&](auto a, auto b) { return place(a) < place(b); });
  return streams;
}

class RunView {
 public:
  RunView(const Run& run, const Explanation& explanation)
      : run_(run),
        graph_(run.program.graph),
        explanation_(explanation),
        draft_(""),
        bars_(graph_, run.timeline, draft_) {}

  TimelineView kernels(std::set<std::uint32_t> ranks) && {
    if (ranks.empty()) ranks = default_ranks();
    Time end = run_.timeline.makespan;
    const std::vector<TaskId> tasks = fitting(ranks, end);
    add_lanes(tasks);
    for (const TaskId task : tasks) bars_.add(task, lanes_.at(graph_.label(task).stream));
    const std::size_t all = simulated_ranks(graph_).size();
    if (ranks.size() < all)
      note(fmt::format("{} of {} simulated ranks are shown; --ranks chooses.", ranks.size(), all));
    return finish(ranks, end);
  }

  TimelineView slots(const std::set<std::uint32_t>& wanted) && {
    add_slots();
    const std::uint32_t rank = wanted.empty() ? 0 : *wanted.begin();
    if (run_.setup.scenario.level != Level::by_slot) add_window(rank);
    note("Of messages between ranks and of gradients that are reduced beside slots only the waits are shown.");
    return finish(simulated_ranks(graph_), run_.timeline.makespan);
  }

 private:
  void note(std::string text) { draft_.view.left_out.push_back(std::move(text)); }

  // Rank 0, and the one that the end waited for most.
  [[nodiscard]] std::set<std::uint32_t> default_ranks() const {
    if (run_.is_pipeline()) return simulated_ranks(graph_);
    std::map<std::uint32_t, Time> times;
    for (const PathStep& step : explanation_.path) times[rank_of(graph_, step.task)] += step.end - step.start;
    const auto most =
        std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == times.end() ? std::set<std::uint32_t>{0} : std::set<std::uint32_t>{0, most->first};
  }

  // By start; the first ones, where they are more than a page holds.
  std::vector<TaskId> fitting(const std::set<std::uint32_t>& ranks, Time& end) {
    std::vector<TaskId> tasks;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (ranks.contains(rank_of(graph_, task)) && is_visible(graph_, run_.timeline, task)) tasks.push_back(task);
    }
    const auto& spans = run_.timeline.spans;
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return spans[a].start < spans[b].start; });
    if (tasks.size() <= kMostBars) return tasks;
    end = spans[tasks[kMostBars]].start;
    note(fmt::format("The first {:.3f} of {:.3f} ms are shown: {} of {} kernels.", to_us(end) / 1e3,
                     to_us(run_.timeline.makespan) / 1e3, kMostBars, tasks.size()));
    tasks.resize(kMostBars);
    return tasks;
  }

  void add_lanes(const std::vector<TaskId>& tasks) {
    std::set<std::uint16_t> used;
    std::set<std::uint32_t> ranks;
    for (const TaskId task : tasks) {
      used.insert(graph_.label(task).stream);
      ranks.insert(rank_of(graph_, task));
    }
    for (const std::uint32_t rank : ranks) {
      for (const std::uint16_t stream : streams_of(graph_, rank)) {
        if (!used.contains(stream)) continue;
        lanes_[stream] = static_cast<std::uint32_t>(draft_.view.lanes.size());
        const Stream& s = graph_.streams()[stream];
        draft_.view.lanes.push_back({rank, s.role == Role::host ? "host, other ranks" : s.name});
      }
    }
  }

  void add_slots() {
    const StepReport& step = *run_.step();
    for (std::uint32_t rank = 0; rank < step.ranks.size(); ++rank) draft_.view.lanes.push_back({rank, "slots"});
    std::vector<Bar> bars;
    for (std::size_t i = 0; i < run_.phases.size(); ++i) {
      const PhaseTimes& row = run_.phases[i];
      Bar bar{.lane = row.rank, .start = row.start, .end = row.end, .alone = row.end - row.start};
      bar.kind = draft_.kind({title_of(step.layout.slots[i].slot), row.phase, "", 0, false});
      bar.phase = draft_.phase({row.phase, row.layer, row.micro_batch, ""});
      bars.push_back(bar);
    }
    const std::vector<std::uint32_t> slots = slots_of_phases(step.layout, graph_.phases().size());
    std::vector<std::uint32_t> of_task(graph_.size());
    for (TaskId task = 0; task < graph_.size(); ++task) of_task[task] = slots[graph_.label(task).phase];
    add_end(of_task, bars);
    bars_.add_groups(bars, std::move(of_task));
  }

  // What comes after a rank's last slot: gradients that are left, optimizer, parameters.
  void add_end(std::vector<std::uint32_t>& of_task, std::vector<Bar>& bars) {
    std::vector<Time> last(run_.step()->ranks.size());
    for (const Bar& bar : bars) last[bar.lane] = std::max(last[bar.lane], bar.end);
    std::map<std::uint32_t, std::uint32_t> group_of_phase;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const Span& span = run_.timeline.spans[task];
      const std::uint32_t rank = rank_of(graph_, task);
      if (of_task[task] != kNoGroup || span.start < last[rank] || graph_.task_class(task).role == Role::host) continue;
      const std::uint32_t id = graph_.label(task).phase;
      const auto [found, added] = group_of_phase.try_emplace(id, static_cast<std::uint32_t>(bars.size()));
      if (added) {
        const Phase& phase = graph_.phases()[id];
        Bar bar{.lane = rank, .start = span.start, .end = span.end};
        bar.kind = draft_.kind(kind_of(graph_, task));
        bar.phase = draft_.phase({phase.name, phase.layer, phase.micro_batch, ""});
        bars.push_back(bar);
      }
      Bar& bar = bars[found->second];
      bar.end = std::max(bar.end, span.end);
      bar.alone = bar.end - bar.start;
      of_task[task] = found->second;
    }
  }

  // Kernels of whole slots of one rank, from the middle one on.
  void add_window(std::uint32_t rank) {
    constexpr std::size_t kMostTasks = 3000;
    std::vector<const PhaseTimes*> slots;
    for (const PhaseTimes& slot : run_.phases) {
      if (slot.rank == rank) slots.push_back(&slot);
    }
    const Time from = slots[slots.size() / 2]->start;
    std::vector<TaskId> tasks;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const bool inside = run_.timeline.spans[task].start >= from && rank_of(graph_, task) == rank;
      if (inside && is_visible(graph_, run_.timeline, task)) tasks.push_back(task);
    }
    const auto& spans = run_.timeline.spans;
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) { return spans[a].start < spans[b].start; });
    Time until = run_.timeline.makespan;
    if (tasks.size() > kMostTasks) {
      for (const PhaseTimes* slot : slots) {
        if (slot->end <= spans[tasks[kMostTasks]].start) until = slot->end;
      }
    }
    std::erase_if(tasks, [&](TaskId task) { return spans[task].start >= until; });
    add_lanes(tasks);
    for (const TaskId task : tasks) bars_.add(task, lanes_.at(graph_.label(task).stream));
    draft_.view.window_name = "kernels";
    draft_.view.window = {from, until};
    close_up_ = {rank, {from, until}};
    note(fmt::format("Kernels are shown of rank {} from {:.3f} to {:.3f} ms: {} of the step's {} tasks.", rank,
                     to_us(from) / 1e3, to_us(until) / 1e3, tasks.size(), graph_.size()));
  }

  TimelineView finish(const std::set<std::uint32_t>& ranks, Time end) {
    bars_.finish(explanation_.path);
    TimelineView& view = draft_.view;
    view.ranks.assign(ranks.begin(), ranks.end());
    view.end = end;
    constexpr std::size_t kMostSteps = 40'000;  // of all resources together
    constexpr std::size_t kResources = 6;
    view.uses = resource_uses(graph_, run_.timeline, ranks, kMostSteps / (kResources * ranks.size()), close_up_);
    return std::move(view);
  }

  const Run& run_;
  const TaskGraph& graph_;
  const Explanation& explanation_;
  ViewDraft draft_;
  TaskBars bars_;
  std::map<std::uint16_t, std::uint32_t> lanes_;  // by stream
  CloseUp close_up_;
};

}  // namespace

std::set<std::uint32_t> simulated_ranks(const TaskGraph& graph) {
  std::set<std::uint32_t> ranks;
  for (const Stream& stream : graph.streams()) ranks.insert(stream.rank);
  return ranks;
}

TimelineView view_of(const Run& run, const Explanation& explanation, std::set<std::uint32_t> ranks) {
  RunView view(run, explanation);
  return run.step() != nullptr ? std::move(view).slots(ranks) : std::move(view).kernels(std::move(ranks));
}

}  // namespace moeline

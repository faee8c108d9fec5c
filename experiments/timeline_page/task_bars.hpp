// Which tasks of a graph are drawn, and on which lanes.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "engine/timeline.hpp"
#include "experiments/run/run.hpp"
#include "experiments/timeline_page/view.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/history.hpp"

namespace moeline {

[[nodiscard]] std::uint32_t rank_of(const TaskGraph& graph, TaskId task);

/// A task of the host that takes no time is a joint of the graph, and nothing to see.
[[nodiscard]] bool is_visible(const TaskGraph& graph, const Timeline& timeline, TaskId task);

/// Visible tasks of these ranks that start at `from` or later, by start.
[[nodiscard]] std::vector<TaskId> visible_tasks(const TaskGraph& graph, const Timeline& timeline,
                                                const std::set<std::uint32_t>& ranks, Time from = {});

/// Adds a lane for each stream that these tasks are on, by rank, the host last; by stream, where it is.
[[nodiscard]] std::map<std::uint16_t, std::uint32_t> add_lanes(const TaskGraph& graph, const std::vector<TaskId>& tasks,
                                                               TimelineView& view);

// Bars of a simulated graph: its tasks one by one, groups of them such as slots, or both.

inline constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

/// Collects bars, then says of each what released it.
class TaskBars {
 public:
  /// REQUIRES: all outlive it.
  TaskBars(const Run& run, ViewDraft& draft)
      : run_(run),
        graph_(run.program.graph),
        timeline_(run.timeline),
        draft_(draft),
        task_bars_(graph_.size(), kNoBar) {}

  void add(TaskId task, std::uint32_t lane);
  /// Groups of tasks that are one bar each; `of_task`: by task its group, or kNoGroup. Call it once.
  void add_groups(const std::vector<Bar>& groups, std::vector<std::uint32_t> of_task);
  /// Puts the bars into the view, by start, with the path. A task that is part of a group and a bar of its own counts
  /// as the latter for other tasks.
  void finish(const std::vector<PathStep>& path);

 private:
  static constexpr std::int32_t kNoBar = -1;
  struct Entry {
    Bar bar;
    TaskId task = 0;  ///< whose start is the bar's
    std::uint32_t group = kNoGroup;
  };

  void sort_entries();
  [[nodiscard]] std::int32_t group_bar(TaskId task) const;
  [[nodiscard]] std::int32_t bar_of(TaskId task, bool by_group) const;
  [[nodiscard]] EventId drawn_before(EventId event, std::int32_t self, bool by_group, const Releases& releases) const;
  [[nodiscard]] BarEvent name(EventId event, bool by_group);
  [[nodiscard]] Time at(EventId event) const;
  void set_releases(std::int32_t index, const Releases& releases);
  void add_path(const std::vector<PathStep>& path);

  const Run& run_;
  const TaskGraph& graph_;
  const Timeline& timeline_;
  ViewDraft& draft_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> group_of_task_;
  std::vector<std::int32_t> task_bars_, group_bars_;
};

/// Class, SMs and price of a task, as its bars share them.
[[nodiscard]] BarKind kind_of(const Run& run, TaskId task);

}  // namespace moeline

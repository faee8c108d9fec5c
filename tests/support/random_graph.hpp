// Random graphs: several ranks whose links are shared within and across them, all holds and all kinds of edges,
// barriers, times of zero, whole times that tie, ids in no topological order.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/task_graph.hpp"
#include "tests/support/dice.hpp"

namespace moeline::testing {

struct GraphShape {
  bool residents = true;
  bool ends_wait = true;  ///< barriers and end(A) -> end(B): what can deadlock
  int time_scale = 1;
  double delays = 1;             ///< times what they usually are
  double links = 1;              ///< capacity of every link, times what it usually is
  std::uint64_t edge_order = 0;  ///< another value: the same edges, written in another order
};

/// Draws one random graph into a draft, after whatever the draft already holds.
class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, GraphShape shape, TaskGraphDraft& draft)
      : dice_(seed), seed_(seed), shape_(shape), draft_(draft) {
    draw_ranks();
    for (std::uint64_t left = 5 + dice_.below(40); left > 0; --left) draw_group();
    // Edges lead from group to group in this order, so there is no cycle, and ids say nothing about it.
    dice_.shuffle(groups_);
    for (std::size_t after = 1; after < groups_.size(); ++after) {
      for (std::uint64_t left = dice_.below(4); left > 0; --left) draw_edge(dice_.below(after), after);
    }
    Dice(shape.edge_order).shuffle(edges_);
    for (const Edge& edge : edges_) (draft_.*edge.order)(edge.before, edge.after);
  }

 private:
  struct Edge {
    void (TaskGraphDraft::*order)(TaskId, TaskId);
    TaskId before, after;
  };
  struct Rank {
    ResourceId pool;
    int sms;
    std::vector<ResourceId> links;
  };

  void draw_ranks() {
    const int sizes[] = {2, 20, 132};
    for (std::uint64_t rank = 0, count = 1 + dice_.below(4); rank < count; ++rank) {
      const int sms = sizes[dice_.below(3)];
      const ResourceId pool = draft_.add_pool(fmt::format("SMs {}", rank), sms);
      ranks_.push_back({pool, sms, {add_link("HBM", 100), add_link("NIC", 10)}});
    }
    if (dice_.percent(50)) {
      const ResourceId across = add_link("switch", 31.4);
      for (Rank& rank : ranks_) rank.links.push_back(across);
    }
  }

  ResourceId add_link(const std::string& name, double capacity) {
    capacities_.resize(draft_.add_link(name, shape_.links * capacity) + std::size_t{1});
    capacities_.back() = capacity;
    return static_cast<ResourceId>(capacities_.size() - 1);
  }

  // One task, or a barrier: a spin per rank, and the join they wait for.
  void draw_group() {
    if (!shape_.ends_wait || !dice_.percent(8)) {
      groups_.push_back({draw_task()});
      return;
    }
    const TaskId join = add({}, {});
    groups_.push_back({join});
    for (const Rank& rank : ranks_) {
      const TaskId spin = add(held(Hold::resident, rank, 1 + dice_.below(2)), {});
      edges_.push_back({&TaskGraphDraft::start_after_start, spin, join});
      edges_.push_back({&TaskGraphDraft::end_after_end, join, spin});
      groups_.back().push_back(spin);
    }
  }

  TaskId draw_task() {
    const Rank& rank = ranks_[dice_.below(ranks_.size())];
    const auto wanted = 1 + (dice_.percent(30) ? dice_.below(2) : dice_.below(static_cast<std::uint64_t>(rank.sms)));
    Task task;
    const std::uint64_t hold = dice_.below(3);
    if (hold == 1) task = held(Hold::elastic, rank, wanted);
    if (hold == 2) task = held(shape_.residents ? Hold::resident : Hold::elastic, rank, wanted);
    task.solo = draw_time(15);
    task.delay = from_us(shape_.delays * to_us(draw_time(70)));
    task.disturbs = hold != 0 && dice_.percent(30);
    if (hold != 0 && dice_.percent(30)) task.disturbed_speed = static_cast<double>(1 + dice_.below(100)) / 100;
    return add(task, draw_usages(rank));
  }

  static Task held(Hold hold, const Rank& rank, std::uint64_t sms) {
    Task task;
    task.pool = rank.pool;
    task.sms = static_cast<std::uint16_t>(sms);
    task.hold = hold;
    return task;
  }

  TaskId add(const Task& task, const std::vector<Usage>& usages) {
    return draft_.add(task, fmt::format("task {} of graph {}", draft_.size(), seed_), usages);
  }

  std::vector<Usage> draw_usages(const Rank& rank) {
    std::vector<Usage> usages;
    for (const ResourceId own : rank.links) {
      if (!dice_.percent(40)) continue;
      const Rank& other = ranks_[dice_.below(ranks_.size())];
      const ResourceId link = dice_.percent(20) ? other.links[0] : own;
      if (std::any_of(usages.begin(), usages.end(), [&](const Usage& u) { return u.link == link; })) continue;
      const double part = dice_.percent(10) ? 0 : static_cast<double>(1 + dice_.below(1000)) / 1000;
      usages.push_back({link, part * capacities_[link]});
    }
    return usages;
  }

  // Many times are whole microseconds, so that events fall on one instant; some are a few picoseconds.
  Time draw_time(std::uint64_t percent_zero) {
    if (dice_.percent(percent_zero)) return Time::zero();
    const std::uint64_t kind = dice_.below(100);
    const std::uint64_t ps = kind < 50   ? 1'000'000 * (1 + dice_.below(8))
                             : kind < 60 ? 1 + dice_.below(5)
                                         : 1 + dice_.below(10'000'000);
    return Time{static_cast<std::int64_t>(ps)} * shape_.time_scale;
  }

  void draw_edge(std::size_t before, std::size_t after) {
    const auto any_of = [&](const std::vector<TaskId>& group) { return group[dice_.below(group.size())]; };
    const std::uint64_t kind = dice_.below(100);
    const auto order = kind < 70                        ? &TaskGraphDraft::start_after_end
                       : kind < 90 || !shape_.ends_wait ? &TaskGraphDraft::start_after_start
                                                        : &TaskGraphDraft::end_after_end;
    const TaskId from = any_of(groups_[before]);
    edges_.push_back({order, from, any_of(groups_[after])});
  }

  Dice dice_;
  std::uint64_t seed_;
  GraphShape shape_;
  TaskGraphDraft& draft_;
  std::vector<Rank> ranks_;
  std::vector<double> capacities_;  // by resource; of pools unused
  std::vector<std::vector<TaskId>> groups_;
  std::vector<Edge> edges_;
};

inline TaskGraph random_graph(std::uint64_t seed, GraphShape shape = {}) {
  TaskGraphDraft draft;
  RandomGraph(seed, shape, draft);
  return TaskGraph(std::move(draft));
}

}  // namespace moeline::testing

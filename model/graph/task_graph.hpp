// The waist of moeline: predictions and measured traces alike become a TaskGraph, and everything downstream reads one.
//
// Vertices are events: every task has a start and an end. So one kind of edge says all three orders:
//   end(A) -> start(B)    B may start once A has ended
//   start(A) -> start(B)  B may start once A has started
//   end(A) -> end(B)      B may end only when A has ended
// and start(T) -> end(T) is always there. The graph is acyclic in its events, even where a barrier (a spin that
// waits for a join that waits for the start of every spin) looks like a cycle of tasks.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "graph/task.hpp"

namespace moeline {

using EventId = std::uint32_t;
[[nodiscard]] constexpr EventId start_of(TaskId task) { return 2 * task; }
[[nodiscard]] constexpr EventId end_of(TaskId task) { return 2 * task + 1; }
[[nodiscard]] constexpr TaskId task_of(EventId event) { return event / 2; }
[[nodiscard]] constexpr bool is_start(EventId event) { return event % 2 == 0; }

/// A graph being written: add tasks and edges in any order, then freeze it into a TaskGraph.
class TaskGraphDraft {
 public:
  ResourceId add_pool(std::string name, int sms);
  ResourceId add_link(std::string name, double capacity);
  NameId intern(std::string_view name);
  std::uint16_t add_class(std::string name, Role role);
  std::uint16_t add_stream(Stream stream);
  std::uint32_t add_phase(Phase phase);

  TaskId add(const Task& task, const Label& label, std::span<const Usage> usages = {});
  /// For tests and small graphs: a task known by its name alone.
  TaskId add(const Task& task, std::string_view name, std::span<const Usage> usages = {});

  void start_after_end(TaskId before, TaskId after) { order(end_of(before), start_of(after)); }
  void start_after_start(TaskId before, TaskId after) { order(start_of(before), start_of(after)); }
  void end_after_end(TaskId before, TaskId after) { order(end_of(before), end_of(after)); }
  void reserve(std::size_t tasks, std::size_t edges);

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] std::size_t phases() const { return phases_.size(); }
  [[nodiscard]] const std::string& name(NameId id) const { return names_[id]; }

 private:
  friend class TaskGraph;
  void order(EventId before, EventId after) { edges_.emplace_back(before, after); }

  std::vector<Task> tasks_;
  std::vector<Label> labels_;
  std::vector<Usage> usages_;
  std::vector<std::uint32_t> usage_begin_{0};
  std::vector<std::pair<EventId, EventId>> edges_;
  std::vector<Resource> resources_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> name_ids_;  // looked up only, never iterated
  std::vector<TaskClass> classes_;
  std::vector<Stream> streams_;
  std::vector<Phase> phases_;
};

/// Tasks that wait for each other, by name.
class CycleError : public SpecError {
 public:
  using SpecError::SpecError;
};

/// Immutable but for the times that tasks take alone. Construction refuses, with a SpecError that names them: a cycle,
/// a task that wants more SMs than its pool has, a usage above its link's capacity, negative times.
class TaskGraph {
 public:
  explicit TaskGraph(TaskGraphDraft&& draft);

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] std::size_t edges() const { return boost::num_edges(events_) - size(); }
  [[nodiscard]] const Task& task(TaskId id) const { return tasks_[id]; }
  void set_solo(TaskId id, Time solo) {
    MOELINE_CHECK(solo >= Time::zero(), task_name(id));
    tasks_[id].solo = solo;
  }
  [[nodiscard]] const Label& label(TaskId id) const { return labels_[id]; }
  [[nodiscard]] const TaskClass& task_class(TaskId id) const { return classes_[labels_[id].task_class]; }
  [[nodiscard]] std::span<const Usage> usages(TaskId id) const {
    return {usages_.data() + usage_begin_[id], usages_.data() + usage_begin_[id + 1]};
  }
  [[nodiscard]] std::span<const Resource> resources() const { return resources_; }
  [[nodiscard]] std::span<const TaskClass> classes() const { return classes_; }
  [[nodiscard]] std::span<const Stream> streams() const { return streams_; }
  [[nodiscard]] std::span<const Phase> phases() const { return phases_; }
  [[nodiscard]] std::span<const std::string> names() const { return names_; }
  [[nodiscard]] const std::string& name(NameId id) const { return names_[id]; }
  [[nodiscard]] const std::string& task_name(TaskId id) const { return names_[labels_[id].name]; }
  /// Of its label; empty where that has none.
  [[nodiscard]] std::string_view task_detail(TaskId id) const {
    return labels_[id].detail == kNoName ? std::string_view() : names_[labels_[id].detail];
  }

  /// The events that wait for this one; of a start, its own end among them.
  [[nodiscard]] std::span<const EventId> successors(EventId event) const {
    const auto& row = events_.m_forward.m_rowstart;
    const EventId* column = events_.m_forward.m_column.data();
    return {column + row[event], column + row[event + 1]};
  }

  /// Every event after all it waits for (Boost's topological sort).
  [[nodiscard]] std::vector<EventId> topological_order() const;

  /// Bytes the frozen graph occupies.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  using Csr = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                 boost::no_property, std::uint32_t, std::uint32_t>;
  void check_demands() const;

  std::vector<Task> tasks_;
  std::vector<Label> labels_;
  std::vector<Usage> usages_;
  std::vector<std::uint32_t> usage_begin_;
  std::vector<Resource> resources_;
  std::vector<std::string> names_;
  std::vector<TaskClass> classes_;
  std::vector<Stream> streams_;
  std::vector<Phase> phases_;
  Csr events_;
};

}  // namespace moeline

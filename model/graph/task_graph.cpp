#include "graph/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/topological_sort.hpp>

namespace moeline {

ResourceId TaskGraphDraft::add_pool(std::string name, int sms) {
  resources_.push_back({std::move(name), ResourceKind::sm_pool, static_cast<double>(sms)});
  return static_cast<ResourceId>(resources_.size() - 1);
}

ResourceId TaskGraphDraft::add_link(std::string name, double capacity) {
  resources_.push_back({std::move(name), ResourceKind::link, capacity});
  return static_cast<ResourceId>(resources_.size() - 1);
}

NameId TaskGraphDraft::intern(std::string_view name) {
  const auto [it, added] = name_ids_.try_emplace(std::string(name), static_cast<NameId>(names_.size()));
  if (added) names_.emplace_back(name);
  return it->second;
}

std::uint16_t TaskGraphDraft::add_class(std::string name, Role role) {
  const auto same = std::find_if(classes_.begin(), classes_.end(), [&](const TaskClass& c) { return c.name == name; });
  if (same != classes_.end()) return static_cast<std::uint16_t>(same - classes_.begin());
  classes_.push_back({std::move(name), role});
  return static_cast<std::uint16_t>(classes_.size() - 1);
}

std::uint16_t TaskGraphDraft::add_stream(Stream stream) {
  streams_.push_back(std::move(stream));
  return static_cast<std::uint16_t>(streams_.size() - 1);
}

std::uint32_t TaskGraphDraft::add_phase(Phase phase) {
  phases_.push_back(std::move(phase));
  return static_cast<std::uint32_t>(phases_.size() - 1);
}

TaskId TaskGraphDraft::add(const Task& task, const Label& label, std::span<const Usage> usages) {
  tasks_.push_back(task);
  labels_.push_back(label);
  usages_.insert(usages_.end(), usages.begin(), usages.end());
  usage_begin_.push_back(static_cast<std::uint32_t>(usages_.size()));
  return static_cast<TaskId>(tasks_.size() - 1);
}

TaskId TaskGraphDraft::add(const Task& task, std::string_view name, std::span<const Usage> usages) {
  Label label;
  label.name = intern(name);
  return add(task, label, usages);
}

void TaskGraphDraft::reserve(std::size_t tasks, std::size_t edges) {
  tasks_.reserve(tasks);
  labels_.reserve(tasks);
  usages_.reserve(tasks);
  usage_begin_.reserve(tasks + 1);
  edges_.reserve(edges + tasks);
}

namespace {

// Thrown out of Boost's search by the visitor that found what it looked for.
struct CycleFound {
  std::vector<EventId> events;
};

struct CycleVisitor : boost::dfs_visitor<> {
  explicit CycleVisitor(std::vector<EventId>& tree_parent) : parent(&tree_parent) {}

  template <class Edge, class Graph>
  void tree_edge(Edge edge, const Graph& graph) const {
    (*parent)[target(edge, graph)] = source(edge, graph);
  }
  template <class Edge, class Graph>
  void back_edge(Edge edge, const Graph& graph) const {
    CycleFound cycle;
    const EventId first = target(edge, graph);
    for (EventId event = source(edge, graph); event != first; event = (*parent)[event]) cycle.events.push_back(event);
    cycle.events.push_back(first);
    std::reverse(cycle.events.begin(), cycle.events.end());
    throw cycle;
  }

  std::vector<EventId>* parent;
};

template <class Graph>
std::vector<EventId> find_cycle(const Graph& graph) {
  std::vector<EventId> parent(num_vertices(graph));
  try {
    boost::depth_first_search(graph, boost::visitor(CycleVisitor(parent)));
  } catch (const CycleFound& cycle) {
    return cycle.events;
  }
  return {};
}

// A task is named by its phase where it has one: that is what the writer of a schedule wrote.
std::string step_name(const TaskGraph& graph, TaskId task) {
  if (graph.phases().empty()) return graph.task_name(task);
  const Phase& phase = graph.phases()[graph.label(task).phase];
  const bool several_ranks = graph.phases().front().rank != graph.phases().back().rank;
  if (several_ranks) return fmt::format("{} of micro-batch {} on rank {}", phase.name, phase.micro_batch, phase.rank);
  return fmt::format("{} of layer {}", phase.name, phase.layer);
}

// "A -> B -> C -> A": each step once, however many of its events lie on the cycle; of a long one not the middle.
std::string describe_cycle(const TaskGraph& graph, std::span<const EventId> events) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> steps;
  for (const EventId event : events) {
    std::string name = step_name(graph, task_of(event));
    if (steps.empty() || steps.back() != name) steps.push_back(std::move(name));
  }
  if (steps.size() == 1 || steps.back() != steps.front()) steps.push_back(steps.front());
  if (steps.size() > kShown + 1) {
    const std::size_t left_out = steps.size() - kShown - 1;
    steps.erase(steps.begin() + kShown, steps.end() - 1);
    steps.insert(steps.end() - 1, fmt::format("... {} more ...", left_out));
  }
  return fmt::format("'{}'", fmt::join(steps, "' -> '"));
}

// Kahn: all events are reached by way of events that wait for nothing any more. A third of what an order costs.
bool is_acyclic(const TaskGraph& graph) {
  std::vector<std::uint32_t> pending(2 * graph.size(), 0);
  for (EventId event = 0; event < pending.size(); ++event) {
    for (const EventId next : graph.successors(event)) ++pending[next];
  }
  std::vector<EventId> ready;
  for (EventId event = 0; event < pending.size(); ++event) {
    if (pending[event] == 0) ready.push_back(event);
  }
  std::size_t reached = 0;
  for (; !ready.empty(); ++reached) {
    const EventId event = ready.back();
    ready.pop_back();
    for (const EventId next : graph.successors(event)) {
      if (--pending[next] == 0) ready.push_back(next);
    }
  }
  return reached == pending.size();
}

}  // namespace

TaskGraph::TaskGraph(TaskGraphDraft&& draft)
    : tasks_(std::move(draft.tasks_)),
      labels_(std::move(draft.labels_)),
      usages_(std::move(draft.usages_)),
      usage_begin_(std::move(draft.usage_begin_)),
      resources_(std::move(draft.resources_)),
      names_(std::move(draft.names_)),
      classes_(std::move(draft.classes_)),
      streams_(std::move(draft.streams_)),
      phases_(std::move(draft.phases_)) {
  MOELINE_CHECK(tasks_.size() < std::numeric_limits<std::uint32_t>::max() / 2, std::to_string(tasks_.size()));
  check_demands();
  for (TaskId task = 0; task < tasks_.size(); ++task) draft.edges_.emplace_back(start_of(task), end_of(task));
  for (const auto& [before, after] : draft.edges_) {
    MOELINE_CHECK(task_of(before) < size() && task_of(after) < size(), fmt::format("{} -> {}", before, after));
  }
  events_ = Csr(boost::edges_are_unsorted_multi_pass, draft.edges_.begin(), draft.edges_.end(),
                static_cast<std::uint32_t>(2 * size()));
  draft = {};
  if (!is_acyclic(*this)) (void)topological_order();  // which names the cycle
}

void TaskGraph::check_demands() const {
  for (TaskId id = 0; id < size(); ++id) {
    const Task& task = tasks_[id];
    const auto refuse = [&](const std::string& why) {
      throw SpecError(fmt::format("task '{}' {}", task_name(id), why));
    };
    if (task.solo < Time::zero() || task.delay < Time::zero()) refuse("has a negative time");
    if ((task.hold != Hold::nothing) != (task.pool != kNoPool)) refuse("must hold SMs of a pool, or neither");
    if (!(task.disturbed_speed > 0 && task.disturbed_speed <= 1)) {
      refuse(fmt::format("has a disturbed speed of {}, which must be above 0 and at most 1", task.disturbed_speed));
    }
    const bool has_neighbours = task.disturbs || task.disturbed_speed < 1;
    if (has_neighbours && task.pool == kNoPool) refuse("has neighbours, and holds no SMs");
    if (task.pool != kNoPool) {
      MOELINE_CHECK(task.pool < resources_.size(), task_name(id));
      const Resource& pool = resources_[task.pool];
      if (pool.kind != ResourceKind::sm_pool) refuse(fmt::format("takes SMs from '{}', which is a link", pool.name));
      if (task.sms == 0) refuse("holds SMs and wants none");
      if (task.sms > pool.capacity) {
        refuse(fmt::format("wants {} SMs of '{}', which has {}", task.sms, pool.name, pool.capacity));
      }
    }
    for (const Usage& usage : usages(id)) {
      MOELINE_CHECK(usage.link < resources_.size(), task_name(id));
      const Resource& link = resources_[usage.link];
      if (link.kind != ResourceKind::link) refuse(fmt::format("uses '{}', which is a pool", link.name));
      double rate = 0;  // one link may be named twice
      for (const Usage& other : usages(id)) rate += other.link == usage.link ? other.rate : 0;
      if (!(usage.rate >= 0) || rate > link.capacity) {
        refuse(fmt::format("uses {} of '{}', which carries {}", rate, link.name, link.capacity));
      }
    }
  }
}

std::vector<EventId> TaskGraph::topological_order() const {
  std::vector<EventId> order;
  order.reserve(2 * size());
  try {
    boost::topological_sort(events_, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    throw CycleError("tasks wait for each other in a circle: " + describe_cycle(*this, find_cycle(events_)));
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::size_t TaskGraph::memory_bytes() const {
  const auto bytes = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  return bytes(tasks_) + bytes(labels_) + bytes(usages_) + bytes(usage_begin_) + bytes(events_.m_forward.m_rowstart) +
         bytes(events_.m_forward.m_column);
}

}  // namespace moeline

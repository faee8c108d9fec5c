#include "timeline/chakra.hpp"

#include <algorithm>
#include <numeric>
#include <protozero/pbf_writer.hpp>

namespace moeline {
namespace {

// Numbers of the schema's fields and enumerations.
enum NodeField { kId = 1, kName = 2, kType = 3, kDataDeps = 5, kStart = 6, kDuration = 7, kNodeAttribute = 10 };
enum AttributeField { kAttributeName = 1, kInt64 = 9, kBool = 27, kText = 29 };
enum NodeType { kComputation = 4, kCollective = 7 };

using Tasks = std::vector<TaskId>;  // sorted, each once

void unite(Tasks& all, const Tasks& more) {
  if (more.empty()) return;
  Tasks united;
  std::set_union(all.begin(), all.end(), more.begin(), more.end(), std::back_inserter(united));
  all = std::move(united);
}

// For each event the tasks of one rank that end before it, as its predecessors say: no further back.
class Waits {
 public:
  Waits(const TaskGraph& graph, std::uint32_t rank) : graph_(graph), rank_(rank), before_(2 * graph.size()) {
    for (const EventId event : graph.topological_order()) {
      const Tasks passed = passed_on(event);
      for (const EventId next : graph.successors(event)) {
        if (!is_own_length(event, next)) unite(before_[next], passed);
      }
    }
  }

  [[nodiscard]] const Tasks& of(TaskId task) const { return before_[start_of(task)]; }

 private:
  [[nodiscard]] bool is_of_rank(TaskId task) const { return graph_.streams()[graph_.label(task).stream].rank == rank_; }
  // From a task's start to its end.
  [[nodiscard]] bool is_own_length(EventId from, EventId to) const {
    return task_of(from) == task_of(to) && is_of_rank(task_of(from));
  }
  // What is waited for by whoever waits for this event.
  [[nodiscard]] Tasks passed_on(EventId event) const {
    Tasks tasks = before_[event];
    if (!is_start(event) && is_of_rank(task_of(event))) unite(tasks, {task_of(event)});
    return tasks;
  }

  const TaskGraph& graph_;
  std::uint32_t rank_;
  std::vector<Tasks> before_;  // by event
};

Tasks tasks_of(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank) {
  Tasks tasks;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.streams()[graph.label(task).stream].rank == rank) tasks.push_back(task);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [&](TaskId a, TaskId b) { return timeline.spans[a].start < timeline.spans[b].start; });
  return tasks;
}

std::uint64_t whole_us(Time time) { return static_cast<std::uint64_t>(std::llround(to_us(time))); }

template <class Add>
void add_attribute(protozero::pbf_writer& message, protozero::pbf_tag_type field, const char* name, Add add) {
  protozero::pbf_writer attribute(message, field);
  attribute.add_string(kAttributeName, name);
  add(attribute);
}

class ChakraWriter {
 public:
  ChakraWriter(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
               const ChakraCollectives& collectives)
      : graph_(graph),
        timeline_(timeline),
        collectives_(collectives),
        tasks_(tasks_of(graph, timeline, rank)),
        waits_(graph, rank) {
    ids_.resize(graph.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) ids_[tasks_[i]] = i;
  }

  std::string write() {
    text_ = kChakraStart;
    for (const TaskId task : tasks_) append(node(task));
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string node(TaskId task) const {
    const TaskClass& task_class = graph_.task_class(task);
    const std::optional<ChakraCollective> collective = collectives_(task);
    std::string bytes;
    protozero::pbf_writer message(bytes);
    message.add_uint64(kId, ids_[task]);
    message.add_string(kName, graph_.task_name(task));
    message.add_enum(kType, collective ? kCollective : kComputation);
    const std::vector<std::uint64_t> dependencies = dependencies_of(task);
    message.add_packed_uint64(kDataDeps, dependencies.begin(), dependencies.end());
    message.add_uint64(kStart, whole_us(timeline_.spans[task].start));
    message.add_uint64(kDuration, whole_us(graph_.task(task).solo));
    add_attribute(message, kNodeAttribute, "is_cpu_op",
                  [&](auto& to) { to.add_bool(kBool, task_class.role == Role::host); });
    if (collective) add_collective(*collective, message);
    add_attribute(message, kNodeAttribute, "class", [&](auto& to) { to.add_string(kText, task_class.name); });
    return bytes;
  }

  // A group is known by a text that is a number.
  static void add_collective(const ChakraCollective& collective, protozero::pbf_writer& node) {
    const auto add_number = [&](const char* name, std::int64_t value) {
      add_attribute(node, kNodeAttribute, name, [&](auto& to) { to.add_int64(kInt64, value); });
    };
    add_number("comm_type", static_cast<std::int64_t>(collective.kind));
    add_number("comm_size", collective.bytes);
    if (collective.group == 0) return;
    add_attribute(node, kNodeAttribute, "pg_name",
                  [&](auto& to) { to.add_string(kText, std::to_string(collective.group)); });
  }

  [[nodiscard]] std::vector<std::uint64_t> dependencies_of(TaskId task) const {
    std::vector<std::uint64_t> ids;
    for (const TaskId before : waits_.of(task)) ids.push_back(ids_[before]);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  void append(const std::string& message) {
    protozero::add_varint_to_buffer(&text_, message.size());
    text_ += message;
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  const ChakraCollectives& collectives_;
  Tasks tasks_;
  Waits waits_;
  std::vector<std::uint64_t> ids_;  // by task
  std::string text_;
};

}  // namespace

std::string chakra_trace(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank,
                         const ChakraCollectives& collectives) {
  return ChakraWriter(graph, timeline, rank, collectives).write();
}

}  // namespace moeline

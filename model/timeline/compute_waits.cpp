#include "timeline/compute_waits.hpp"

#include <algorithm>

#include "timeline/intervals.hpp"

namespace moeline {
namespace {

struct RankTasks {
  std::vector<TaskId> stream;     // "compute", in its order
  std::vector<Interval> exposed;  // communication and no compute
};

RankTasks compute_and_exposed(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank) {
  RankTasks tasks;
  std::vector<bool> is_compute;  // by stream
  for (const Stream& stream : graph.streams()) is_compute.push_back(stream.name == "compute");
  std::vector<Interval> communication;
  std::vector<Interval> computation;
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Label& label = graph.label(id);
    if (graph.streams()[label.stream].rank != rank) continue;
    if (is_compute[label.stream]) tasks.stream.push_back(id);
    const Role role = graph.task_class(id).role;
    const Interval span{timeline.spans[id].start, timeline.spans[id].end};
    if (role == Role::communication) communication.push_back(span);
    if (role == Role::compute) computation.push_back(span);
  }
  tasks.exposed = subtract(unite(std::move(communication)), unite(std::move(computation)));
  return tasks;
}

void add(std::uint32_t phase, Time wait, std::vector<ComputeWait>& waits) {
  if (wait == Time::zero()) return;
  if (waits.empty() || waits.back().phase != phase) waits.push_back({phase, Time::zero()});
  waits.back().wait += wait;
}

}  // namespace

std::vector<ComputeWait> compute_waits(const TaskGraph& graph, const Timeline& timeline, std::uint32_t rank) {
  const RankTasks tasks = compute_and_exposed(graph, timeline, rank);
  std::vector<ComputeWait> waits;
  if (tasks.stream.empty()) return waits;
  Time last_end = timeline.spans[tasks.stream.front()].start;
  auto next = tasks.exposed.begin();  // idle times ascend, and so do the intervals that they can meet
  for (const TaskId id : tasks.stream) {
    const Span& span = timeline.spans[id];
    const Interval idle{last_end, std::max(last_end, span.ready - graph.task(id).delay)};
    last_end = std::max(last_end, span.end);
    if (graph.task_class(id).role == Role::communication) {  // a receive waits for all ranks
      add(graph.label(id).phase, idle.end - idle.start, waits);
      continue;
    }
    while (next != tasks.exposed.end() && next->end <= idle.start) ++next;
    Time wait{};
    for (auto each = next; each != tasks.exposed.end() && each->start < idle.end; ++each) {
      wait += std::min(each->end, idle.end) - std::max(each->start, idle.start);
    }
    add(graph.label(id).phase, wait, waits);
  }
  return waits;
}

}  // namespace moeline

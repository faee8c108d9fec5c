#include "timeline/metrics.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "timeline/intervals.hpp"

namespace moeline {
namespace {

struct RankTimes {
  std::vector<Interval> compute, communication;
  std::vector<std::vector<Interval>> by_class;
  double sm_us = 0;
  double pool = 0;  // SMs
};

struct Window {
  Time start, end;

  [[nodiscard]] Interval clip(const Span& span) const {
    return {std::clamp(span.start, start, end), std::clamp(span.end, start, end)};
  }
};

// SM x us that a task takes, all of its span: an elastic kernel's work is the same at any speed.
double sm_time(const Task& task, const Span& span) {
  if (task.hold == Hold::nothing) return 0;
  return task.sms * to_us(task.hold == Hold::resident ? span.end - span.start : task.solo);
}

using RanksTimes = std::map<std::uint32_t, RankTimes>;

RanksTimes collect(const TaskGraph& graph, const Timeline& timeline, const Window& window, Metrics& metrics) {
  RanksTimes ranks;
  std::vector<RankTimes*> of_stream;
  for (const Stream& stream : graph.streams()) of_stream.push_back(&ranks[stream.rank]);
  for (auto& [number, rank] : ranks) rank.by_class.resize(graph.classes().size());
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Label& label = graph.label(id);
    const TaskClass& task_class = graph.task_class(id);
    if (task_class.role == Role::host) continue;
    const Span& span = timeline.spans[id];
    const Interval inside = window.clip(span);
    const double share = span.end > span.start ? ratio(inside.end - inside.start, span.end - span.start) : 0;
    RankTimes& rank = *of_stream[label.stream];
    (task_class.role == Role::compute ? rank.compute : rank.communication).push_back(inside);
    rank.by_class[label.task_class].push_back(inside);
    const Task& task = graph.task(id);
    rank.sm_us += share * sm_time(task, span);
    if (task.hold != Hold::nothing) rank.pool = graph.resources()[task.pool].capacity;
    metrics.classes[label.task_class].solo += share == 1 ? task.solo : from_us(share * to_us(task.solo));
  }
  return ranks;
}

void add_rank(RankTimes& rank, Time span, Metrics& sum) {
  const std::vector<Interval> compute = unite(std::move(rank.compute));
  const std::vector<Interval> comm = unite(std::move(rank.communication));
  const Time exposed = total(comm) - overlap(comm, compute);
  sum.span += span;
  sum.compute_busy += total(compute);
  sum.comm_busy += total(comm);
  sum.exposed_comm += exposed;
  sum.idle += span - total(compute) - exposed;
  if (rank.pool > 0 && span > Time::zero()) sum.sm_use += rank.sm_us / (rank.pool * to_us(span));
  for (std::size_t i = 0; i < rank.by_class.size(); ++i) {
    sum.classes[i].busy += covered_by(std::move(rank.by_class[i]));
  }
}

// From the first start to the last end, on any rank.
Time covered(const RanksTimes& ranks) {
  Time first = Time::max();
  Time last = Time::min();
  for (const auto& [id, rank] : ranks) {
    for (const auto* intervals : {&rank.compute, &rank.communication}) {
      for (const Interval& interval : *intervals) {
        first = std::min(first, interval.start);
        last = std::max(last, interval.end);
      }
    }
  }
  return std::max(Time::zero(), first == Time::max() ? Time::zero() : last - first);
}

void average(std::size_t ranks, Metrics& metrics) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, ranks));
  for (Time* time : {&metrics.span, &metrics.compute_busy, &metrics.comm_busy, &metrics.exposed_comm, &metrics.idle}) {
    *time /= count;
  }
  metrics.sm_use /= static_cast<double>(count);
  for (ClassTimes& times : metrics.classes) {
    times.busy /= count;
    times.solo /= count;
  }
}

// `window` zero: the span is what the kernels of all ranks cover.
Metrics measure(const TaskGraph& graph, const Timeline& timeline, const Window& limits, Time window) {
  Metrics metrics;
  for (const TaskClass& task_class : graph.classes()) metrics.classes.push_back({task_class.name, {}, {}});
  RanksTimes ranks = collect(graph, timeline, limits, metrics);
  const Time span = window > Time::zero() ? window : covered(ranks);
  for (auto& [id, rank] : ranks) add_rank(rank, span, metrics);
  average(ranks.size(), metrics);
  for (std::size_t i = graph.classes().size(); i-- > 0;) {
    if (graph.classes()[i].role == Role::host)
      metrics.classes.erase(metrics.classes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::sort(metrics.classes.begin(), metrics.classes.end(),
            [](const ClassTimes& a, const ClassTimes& b) { return a.name < b.name; });
  return metrics;
}

}  // namespace

double Metrics::overlap_fraction() const { return ratio(comm_busy - exposed_comm, comm_busy); }
double Metrics::bubble_fraction() const { return ratio(idle, span); }

Metrics measure(const TaskGraph& graph, const Timeline& timeline) {
  return measure(graph, timeline, {Time::min(), Time::max()}, Time::zero());
}

Metrics measure(const TaskGraph& graph, const Timeline& timeline, Time start, Time end) {
  return measure(graph, timeline, {start, end}, end - start);
}

Metrics scaled(Metrics metrics, double part) {
  if (part == 1) return metrics;
  const auto scale = [part](Time& time) { time = from_us(to_us(time) * part); };
  for (Time* time : {&metrics.span, &metrics.compute_busy, &metrics.comm_busy, &metrics.exposed_comm, &metrics.idle}) {
    scale(*time);
  }
  for (ClassTimes& times : metrics.classes) {
    scale(times.busy);
    scale(times.solo);
  }
  return metrics;
}

void extend(Metrics& metrics, const Metrics& part, double times) {
  const auto add = [times](Time& sum, Time more) { sum += from_us(to_us(more) * times); };
  const double sm_us = metrics.sm_use * to_us(metrics.span) + part.sm_use * to_us(part.span) * times;
  add(metrics.span, part.span);
  metrics.sm_use = sm_us / to_us(metrics.span);
  add(metrics.compute_busy, part.compute_busy);
  add(metrics.comm_busy, part.comm_busy);
  add(metrics.exposed_comm, part.exposed_comm);
  add(metrics.idle, part.idle);
  for (std::size_t i = 0; i < metrics.classes.size(); ++i) {
    MOELINE_CHECK(metrics.classes[i].name == part.classes[i].name, part.classes[i].name);
    add(metrics.classes[i].busy, part.classes[i].busy);
    add(metrics.classes[i].solo, part.classes[i].solo);
  }
}

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

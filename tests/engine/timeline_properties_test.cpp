// Of every run: tasks start and end when their edges and their work allow, and the makespan is no shorter than
// possible.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/random_runs.hpp"
#include "tests/support/replay.hpp"

TEST_SUITE("engine/timeline_properties") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr double kTolerance = 1e-9;  // of a duration: rounding of doubles
constexpr double kBankedPs = 1e-3;   // of work: rounding of doubles, each time a speed changes

Time critical_path(const TaskGraph& graph) {
  std::vector<Time> at(2 * graph.size());
  Time last{};
  for (const EventId event : graph.topological_order()) {
    const Task& task = graph.task(task_of(event));
    if (is_start(event)) at[event] += task.delay;
    for (const EventId next : graph.successors(event)) {
      const Time work = next == end_of(task_of(event)) ? task.solo : Time::zero();
      at[next] = std::max(at[next], at[event] + work);
    }
    last = std::max(last, at[event]);
  }
  return last;
}

// At full speed: the picoseconds for which each resource is busy with its work, and no other way round.
std::vector<double> busy_ps(const TaskGraph& graph) {
  std::vector<double> busy(graph.resources().size());
  for (TaskId id = 0; id < graph.size(); ++id) {
    const Task& task = graph.task(id);
    if (task.pool != kNoPool) busy[task.pool] += ps(task.solo) * task.sms / graph.resources()[task.pool].capacity;
    for (const Usage& usage : graph.usages(id)) {
      busy[usage.link] += ps(task.solo) * usage.rate / graph.resources()[usage.link].capacity;
    }
  }
  return busy;
}

std::string broken_edge(const RandomRun& run) {
  const std::vector<Span>& spans = run.timeline.spans;
  std::vector<Time> released(run.graph.size());
  for (EventId event = 0; event < 2 * run.graph.size(); ++event) {
    const Span& before = spans[task_of(event)];
    const Time at = is_start(event) ? before.start : before.end;
    for (const EventId next : run.graph.successors(event)) {
      if (is_start(next)) {
        released[task_of(next)] = std::max(released[task_of(next)], at);
      } else if (spans[task_of(next)].end < at) {
        return describe(run, task_of(event)) + "; " + describe(run, task_of(next));
      }
    }
  }
  for (TaskId id = 0; id < run.graph.size(); ++id) {
    if (spans[id].ready != released[id] + run.graph.task(id).delay) return describe(run, id);
  }
  return "";
}

std::vector<bool> ends_that_wait(const TaskGraph& graph) {
  std::vector<bool> waits(graph.size(), false);
  for (EventId event = 0; event < 2 * graph.size(); ++event) {
    for (const EventId next : graph.successors(event)) {
      if (!is_start(next) && task_of(next) != task_of(event)) waits[task_of(next)] = true;
    }
  }
  return waits;
}

std::string work_lost_or_gained(const RandomRun& run) {
  Replay replay(run.graph, run.timeline);
  std::vector<double> left(run.graph.size());
  while (replay.next()) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      if (replay.span(id).end == replay.now()) left[id] = replay.left_ps(id);
    }
  }
  const std::vector<bool> waits = ends_that_wait(run.graph);
  for (TaskId id = 0; id < run.graph.size(); ++id) {
    // A task ends at the first whole picosecond after its work, so it may do one picosecond too much.
    const bool right = left[id] <= kBankedPs && (waits[id] || left[id] >= -1 - kBankedPs);
    if (!right) return fmt::format("{}, ends with {} ps of work left", describe(run, id), left[id]);
  }
  return "";
}

}  // namespace

TEST_CASE("no run is shorter than its critical path") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    CHECK(run.timeline.makespan >= critical_path(run.graph));
  }
}

TEST_CASE("no run is shorter than the work on any pool or link takes at full capacity") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    for (const double busy : busy_ps(run.graph)) CHECK(ps(run.timeline.makespan) >= busy * (1 - kTolerance));
  }
}

TEST_CASE("the makespan is the end of the last task") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    Time last{};
    for (const Span& span : run.timeline.spans) last = std::max(last, span.end);
    CHECK(run.timeline.makespan == last);
  }
}

TEST_CASE("every edge is respected, and a task is ready exactly its delay after the last event it waits for") {
  none_in_any_run(broken_edge);
}

TEST_CASE("no task is faster than alone, to the picosecond") {
  none_in_any_run([](const RandomRun& run) -> std::string {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      const Span& span = run.timeline.spans[id];
      const bool right =
          span.ready <= span.start && span.start <= span.end && span.end - span.start >= run.graph.task(id).solo;
      if (!right) return describe(run, id);
    }
    return "";
  });
}

TEST_CASE("a task ends with the picosecond in which its work is done, and never before") {
  none_in_any_run(work_lost_or_gained);
}

}  // TEST_SUITE("engine/timeline_properties")

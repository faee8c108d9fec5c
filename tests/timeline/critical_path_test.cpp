// Why a timeline takes as long as it does, and how short it could be.
#include "timeline/critical_path.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/random_runs.hpp"
#include "tests/support/small_graph.hpp"
#include "timeline/bounds.hpp"
#include "timeline/shortened.hpp"

TEST_SUITE("timeline/critical_path") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Explained {
  TaskGraph graph;
  Timeline timeline;
  std::vector<PathStep> path;
};

Explained explain(SmallGraph&& small) {
  TaskGraph graph = small.freeze();
  Timeline timeline = simulate(graph);
  std::vector<PathStep> path = critical_path(graph, timeline);
  return {std::move(graph), std::move(timeline), std::move(path)};
}

using Step = std::tuple<TaskId, PathReason, double>;  // task, reason, us

std::vector<Step> steps(const std::vector<PathStep>& path) {
  std::vector<Step> list;
  for (const PathStep& step : path) list.emplace_back(step.task, step.reason, to_us(step.end - step.start));
  return list;
}

Time total(const std::vector<PathStep>& path) {
  Time sum{};
  for (const PathStep& step : path) sum += step.end - step.start;
  return sum;
}

double bound_us(const TaskGraph& graph, const std::string& what) {
  for (const Bound& bound : lower_bounds(graph)) {
    if (bound.what == what) return to_us(bound.time);
  }
  return 0;
}

}  // namespace

TEST_CASE("the path of a chain is the chain, launches included") {
  SmallGraph small;
  const TaskId first = small.plain(10), second = small.plain(20, 2);
  small.edges().start_after_end(first, second);
  const Explained run = explain(std::move(small));
  CHECK(steps(run.path) == std::vector<Step>{{first, PathReason::running, 10},
                                             {second, PathReason::launch, 2},
                                             {second, PathReason::running, 20}});
  CHECK(bound_us(run.graph, "path") == 32);
}

TEST_CASE("of a fork the longer arm is the path, and of two that tie the first") {
  for (const double longer : {30.0, 20.0}) {
    SmallGraph small;
    const TaskId fork = small.plain(5), one = small.plain(20), other = small.plain(longer), join = small.plain(1);
    for (const TaskId arm : {one, other}) {
      small.edges().start_after_end(fork, arm);
      small.edges().start_after_end(arm, join);
    }
    const Explained run = explain(std::move(small));
    CHECK(std::get<0>(steps(run.path)[1]) == (longer > 20 ? other : one));
  }
}

TEST_CASE("of two tasks on one link each is slowed by the other, and the link is the bound") {
  SmallGraph small;
  const ResourceId link = small.link("link", 10);
  const std::vector<Usage> all = {{link, 10}};
  const TaskId one = small.plain(10, 0, all);
  (void)small.plain(10, 0, all);
  const Explained run = explain(std::move(small));
  CHECK(steps(run.path) == std::vector<Step>{{one, PathReason::running, 10}, {one, PathReason::slowed, 10}});
  CHECK(bound_us(run.graph, "link") == doctest::Approx(20));
  CHECK(bound_us(run.graph, "path") == 10);
}

TEST_CASE("a resident that comes second waits for the SMs of the first") {
  SmallGraph small;
  const TaskId first = small.resident(132, 10), second = small.resident(20, 5);
  const Explained run = explain(std::move(small));
  CHECK(steps(run.path) == std::vector<Step>{{second, PathReason::sms, 10}, {second, PathReason::running, 5}});
  CHECK(first == 0);
  CHECK(bound_us(run.graph, "SMs") == doctest::Approx(10 + 5 * 20 / 132.0));
}

TEST_CASE("the path through a barrier leads to the rank that came last") {
  SmallGraph small;
  const TaskId early = small.plain(10), late = small.plain(40);
  const TaskId spin = small.plain(1), other_spin = small.plain(1), join = small.plain(0);
  small.edges().start_after_end(early, spin);
  small.edges().start_after_end(late, other_spin);
  for (const TaskId each : {spin, other_spin}) {
    small.edges().start_after_start(each, join);
    small.edges().end_after_end(join, each);
  }
  const TaskId after = small.plain(5);
  small.edges().start_after_end(spin, after);
  const Explained run = explain(std::move(small));
  std::vector<TaskId> tasks;
  for (const PathStep& step : run.path) tasks.push_back(step.task);
  CHECK(tasks.front() == late);
  CHECK(tasks.back() == after);
  CHECK(std::find(tasks.begin(), tasks.end(), early) == tasks.end());
}

TEST_CASE("what stands for the slowest rank is blamed as such") {
  SmallGraph small;
  const TaskId work = small.plain(10), slowest = small.plain(3);
  small.edges().start_after_end(work, slowest);
  const TaskGraph graph = small.freeze();
  const std::vector<PathStep> path = critical_path(graph, simulate(graph), {false, true});
  CHECK(path.back().task == slowest);
  CHECK(path.back().reason == PathReason::stragglers);
}

TEST_CASE("of random graphs every instant has one reason, and no timeline is shorter than a bound") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    const std::vector<PathStep> path = critical_path(run.graph, run.timeline);
    REQUIRE(total(path) == run.timeline.makespan);
    Time at{};
    for (const PathStep& step : path) {
      REQUIRE(step.start == at);
      at = step.end;
    }
    for (const Bound& bound : lower_bounds(run.graph)) {
      CAPTURE(bound.what);
      REQUIRE(bound.time <= run.timeline.makespan);
    }
  }
}

TEST_CASE("a stage that works 30 us cannot begin before 10 us nor end the step: its bound has the ramp of both sides") {
  SmallGraph small;
  const ResourceId stage = small.pool("stage", 132);
  const TaskId before = small.plain(10), after = small.plain(7);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    const TaskId work = small.held(Hold::resident, stage, 132, 10);
    small.edges().start_after_end(before, work);
    small.edges().start_after_end(work, after);
  }
  const Explained run = explain(std::move(small));
  CHECK(bound_us(run.graph, "stage") == doctest::Approx(10 + 30 + 7));
  CHECK(bound_us(run.graph, "path") == 10 + 10 + 7);
  CHECK(to_us(run.timeline.makespan) == 47);
}

TEST_CASE("what slows a task is split by what there was too little of") {
  SmallGraph small;
  const ResourceId link = small.link("link", 10);
  const TaskId alone = small.plain(10, 0, {{link, 10}});
  const TaskId beside = small.plain(5, 0, {{link, 10}});
  const TaskId crowded = small.elastic(132, 10), holder = small.resident(66, 4);
  small.edges().start_after_end(alone, crowded);
  small.edges().start_after_end(alone, holder);
  const TaskGraph graph = small.freeze();
  const Timeline timeline = simulate(graph, {.record_changes = true});
  const std::vector<PathStep> path = by_resource(critical_path(graph, timeline), timeline);
  CHECK(total(path) == timeline.makespan);
  std::map<std::string, double> lost;
  for (const Blame& each : blame(graph, path)) {
    if (each.reason == PathReason::slowed) lost[each.by] = to_us(each.time);
  }
  CHECK(lost == std::map<std::string, double>{{"SMs", 2}, {"link", 5}});
  CHECK(beside == 1);
}

TEST_CASE("a task off the path has as much slack as it may take longer, and one that ties has none") {
  SmallGraph small;
  const TaskId fork = small.plain(5), shorter = small.plain(20), longer = small.plain(30), tied = small.plain(30);
  const TaskId join = small.plain(1);
  for (const TaskId arm : {shorter, longer, tied}) {
    small.edges().start_after_end(fork, arm);
    small.edges().start_after_end(arm, join);
  }
  const TaskGraph graph = small.freeze();
  const Timeline timeline = simulate(graph, {.record_changes = true});
  std::vector<double> slack_us;
  for (const Time time : slack(graph, timeline, History(graph, timeline))) slack_us.push_back(to_us(time));
  CHECK(slack_us == std::vector<double>{0, 10, 0, 0, 0});
}

TEST_CASE(
    "of random graphs no slack is negative, the path has none, and a resource's idle time and its work make up the "
    "span") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    const std::vector<Time> slacks = slack(run.graph, run.timeline, History(run.graph, run.timeline));
    for (const Time time : slacks) REQUIRE(time >= Time::zero());
    const std::vector<PathStep> path = critical_path(run.graph, run.timeline);
    REQUIRE(total(by_resource(path, run.timeline)) == run.timeline.makespan);
    // Before a wait for SMs the path is that of the task that waits: it is its SMs' holder that has no slack.
    for (auto step = path.rbegin(); step != path.rend() && step->reason != PathReason::sms; ++step) {
      if (step->reason == PathReason::running) REQUIRE(slacks[step->task] == Time::zero());
    }
    for (ResourceId id = 0; id < run.graph.resources().size(); ++id) {
      double work_us = 0, idle_us = 0;
      for (TaskId task = 0; task < run.graph.size(); ++task) {
        double amount = run.graph.task(task).pool == id ? run.graph.task(task).sms : 0;
        for (const Usage& usage : run.graph.usages(task)) amount += usage.link == id ? usage.rate : 0;
        work_us += amount * to_us(run.graph.task(task).solo) / run.graph.resources()[id].capacity;
      }
      for (const Time time : unused(run.graph, run.timeline, id, path)) idle_us += to_us(time);
      REQUIRE(work_us + idle_us == doctest::Approx(to_us(run.timeline.makespan)).epsilon(1e-5));
    }
  }
}

}  // TEST_SUITE("timeline/critical_path")

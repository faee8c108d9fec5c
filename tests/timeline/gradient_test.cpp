// What a small change of each time and capacity does to a timeline, against the engine itself.
#include "timeline/gradient.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "tests/support/random_runs.hpp"
#include "tests/support/small_graph.hpp"

TEST_SUITE("timeline/gradient") {

using namespace moeline;
using namespace moeline::testing;

namespace {

struct Run {
  TaskGraph graph;
  Timeline timeline;
  Gradient gradient;
};

Run run(TaskGraph graph) {
  Timeline timeline = simulate(graph, {.record_changes = true});
  Gradient gradient = span_gradient(graph, timeline, History(graph, timeline));
  return {std::move(graph), std::move(timeline), std::move(gradient)};
}

// Nothing ties by chance once every time is a little longer.
TaskGraph without_ties(std::uint64_t seed, GraphShape shape) {
  TaskGraph graph = random_graph(seed, shape);
  Dice dice(seed);
  for (TaskId id = 0; id < graph.size(); ++id)
    graph.set_solo(id, graph.task(id).solo + Time(1 + dice.below(1'000'000)));
  return graph;
}

// ps for each ps that the task takes longer alone, by simulating it. Nothing where more and less have different
// answers.
std::optional<double> simulated_gradient(const Run& run, TaskId id) {
  constexpr double kStep = 20'000;  // ps: far above the rounding of a hundred events, far below a task's time
  constexpr double kSame = 1e-3;
  TaskGraph graph = run.graph;
  const auto moved = [&](double step) {
    graph.set_solo(id, run.graph.task(id).solo + Time(static_cast<std::int64_t>(step)));
    return static_cast<double>((simulate(graph).makespan - run.timeline.makespan).count()) / step;
  };
  const double more = moved(kStep), less = moved(-kStep);
  if (std::abs(more - less) > kSame) return std::nullopt;
  return more;
}

}  // namespace

TEST_CASE("known answers: a chain counts fully, of a fork the longer arm, and a launch as much as a kernel") {
  SmallGraph small;
  const TaskId fork = small.plain(5), shorter = small.plain(20), longer = small.plain(30, 2), join = small.plain(1);
  for (const TaskId arm : {shorter, longer}) {
    small.edges().start_after_end(fork, arm);
    small.edges().start_after_end(arm, join);
  }
  const Run result = run(small.freeze());
  CHECK(result.gradient.solo == std::vector<double>{1, 0, 1, 1});
  CHECK(result.gradient.delay == std::vector<double>{1, 0, 1, 1});
}

TEST_CASE("two transfers that fill a link all the time: either's bytes count, and the capacity against both") {
  SmallGraph small;
  const ResourceId link = small.link("link", 10);
  const TaskId one = small.plain(10, 0, {{link, 10}});
  const TaskId other = small.plain(5, 0, {{link, 10}});
  const Run result = run(small.freeze());
  CHECK(to_us(result.timeline.makespan) == doctest::Approx(15));
  CHECK(result.gradient.solo[one] == doctest::Approx(1));
  CHECK(result.gradient.solo[other] == doctest::Approx(1));
  CHECK(result.gradient.capacity[link] == doctest::Approx(-10e6));  // the last 5 us one runs alone at full speed
  CHECK(result.gradient.usage[0] + result.gradient.usage[1] == doctest::Approx(10e6));
}

TEST_CASE("what waits for SMs is put off by what holds them, and by nothing else") {
  SmallGraph small;
  const TaskId holder = small.resident(132, 10), early = small.plain(8), waiting = small.resident(20, 5, 0);
  small.edges().start_after_end(early, waiting);
  const Run result = run(small.freeze());
  CHECK(result.gradient.solo[holder] == 1);
  CHECK(result.gradient.solo[early] == 0);
  CHECK(result.gradient.delay[waiting] == 0);
}

TEST_CASE("since the start of a task, what comes before it counts no more") {
  SmallGraph small;
  const TaskId host = small.plain(7), kernel = small.plain(5);
  small.edges().start_after_end(host, kernel);
  const TaskGraph graph = small.freeze();
  const Timeline timeline = simulate(graph, {.record_changes = true});
  const Gradient gradient = span_gradient(graph, timeline, History(graph, timeline), from_us(7));
  CHECK(gradient.solo == std::vector<double>{0, 1});
}

TEST_CASE("of random graphs every task's gradient is what simulating a longer and a shorter one gives") {
  int checked = 0, kinks = 0;
  for (const RandomRun& random : random_runs()) {
    CAPTURE(random.seed);
    const Run untied = run(without_ties(random.seed, shape_of(random.seed)));
    for (TaskId id = 0; id < untied.graph.size(); ++id) {
      if (untied.graph.task(id).solo < from_us(0.5)) continue;
      const std::optional<double> simulated = simulated_gradient(untied, id);
      kinks += !simulated;
      if (!simulated) continue;
      ++checked;
      CAPTURE(id);
      CHECK(std::abs(untied.gradient.solo[id] - *simulated) < 2e-3);
    }
  }
  CHECK(checked > 4000);
  CHECK(kinks < checked / 50);
}

// The gradient of all links, or of all delays, to e times as much.
double of_all(const Run& run, bool links) {
  double sum = 0;
  if (!links) {
    for (TaskId id = 0; id < run.graph.size(); ++id) {
      sum += run.gradient.delay[id] * static_cast<double>(run.graph.task(id).delay.count());
    }
    return sum;
  }
  for (ResourceId id = 0; id < run.graph.resources().size(); ++id) {
    if (run.graph.resources()[id].kind == ResourceKind::link) sum += run.gradient.capacity[id];
  }
  return sum;
}

TEST_CASE("of random graphs the gradient of all links, and of all delays, is what simulating a little more gives") {
  constexpr double kMore = 1.0001;
  for (const bool links : {true, false}) {
    CAPTURE(links);
    int checked = 0, kinks = 0;
    for (const RandomRun& random : random_runs()) {
      CAPTURE(random.seed);
      GraphShape shape = shape_of(random.seed);
      const Run usual = run(without_ties(random.seed, shape));
      (links ? shape.links : shape.delays) = kMore;
      const Run more = run(without_ties(random.seed, shape));
      const double gradient = of_all(usual, links), gradient_of_more = of_all(more, links);
      const bool alike = std::abs(gradient - gradient_of_more) < 1e-3 * to_us(usual.timeline.makespan) * 1e6;
      kinks += !alike;
      if (!alike) continue;  // things happen in another order
      ++checked;
      const auto moved = static_cast<double>((more.timeline.makespan - usual.timeline.makespan).count());
      const double expected = std::log(kMore) * (gradient + gradient_of_more) / 2;
      CHECK(std::abs(moved - expected) < 5 + 0.01 * std::abs(expected));  // ends and delays are rounded to a ps
    }
    CHECK(checked > 250);
    CHECK(kinks < 10);
  }
}

}  // TEST_SUITE("timeline/gradient")

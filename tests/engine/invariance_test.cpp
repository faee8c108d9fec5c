// What makes no difference to a run: running again, the order of edges, other graphs beside it, the unit of time. And
// which graphs cannot be run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "tests/support/random_runs.hpp"

TEST_SUITE("engine/invariance") {

using namespace moeline;
using namespace moeline::testing;

namespace {

bool same_spans(std::span<const Span> a, std::span<const Span> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.ready == y.ready && x.start == y.start && x.end == y.end;
  });
}

}  // namespace

TEST_CASE("a second run of the same graph gives the same spans") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    CHECK(same_spans(run.timeline.spans, simulate(run.graph).spans));
  }
}

TEST_CASE("the order in which the edges are written does not matter") {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    GraphShape shape = shape_of(run.seed);
    shape.edge_order = 1;
    CHECK(same_spans(run.timeline.spans, simulate(random_graph(run.seed, shape)).spans));
  }
}

TEST_CASE("graphs that share no resource do not notice each other") {
  const std::vector<RandomRun>& all = random_runs();
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    CAPTURE(all[i].seed);
    TaskGraphDraft both;
    for (const RandomRun* run : {&all[i], &all[i + 1]}) RandomGraph(run->seed, shape_of(run->seed), both);
    const Timeline together = simulate(TaskGraph(std::move(both)));
    const std::span<const Span> spans = together.spans;
    CHECK(same_spans(all[i].timeline.spans, spans.first(all[i].graph.size())));
    CHECK(same_spans(all[i + 1].timeline.spans, spans.subspan(all[i].graph.size())));
  }
}

// Not so with residents: whether two of them are ready in the same picosecond decides who goes first.
TEST_CASE("where no resident decides by order, twice the times make twice the makespan") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const auto makespan = [&](int scale) {
      return simulate(random_graph(seed, {.residents = false, .ends_wait = false, .time_scale = scale})).makespan;
    };
    CHECK(std::abs((makespan(2) - 2 * makespan(1)).count()) <= 1000);
  }
}

TEST_CASE("a graph whose ends wait for nothing never deadlocks, and a deadlock names a task") {
  std::size_t deadlocks = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    CAPTURE(seed);
    try {
      (void)simulate(random_graph(seed, shape_of(seed)));
    } catch (const SpecError& error) {
      ++deadlocks;
      CHECK(shape_of(seed).ends_wait);
      CHECK(std::string(error.what()).find(": 'task ") != std::string::npos);
    }
  }
  CHECK(deadlocks > 0);
  CHECK(random_runs().size() == kGraphs - deadlocks);
  CHECK(random_runs().size() > kGraphs / 2);
}

}  // TEST_SUITE("engine/invariance")

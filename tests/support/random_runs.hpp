// Runs of random graphs, of which a property must hold without exception.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "engine/simulate.hpp"
#include "tests/support/random_graph.hpp"

namespace moeline::testing {

constexpr std::uint64_t kGraphs = 300;

/// A graph, and what the engine made of it.
struct RandomRun {
  std::uint64_t seed;
  TaskGraph graph;
  Timeline timeline;
};

/// Every second graph has ends that wait; those of them that deadlock are the subject of a case of their own.
inline GraphShape shape_of(std::uint64_t seed) { return {.ends_wait = seed % 2 == 1}; }

/// Of all graphs that do not deadlock.
inline const std::vector<RandomRun>& random_runs() {
  static const std::vector<RandomRun> all = [] {
    std::vector<RandomRun> done;
    for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
      TaskGraph graph = random_graph(seed, shape_of(seed));
      try {
        Timeline timeline = simulate(graph, {.record_changes = true});
        done.push_back({seed, std::move(graph), std::move(timeline)});
      } catch (const SpecError&) {
        REQUIRE(shape_of(seed).ends_wait);
      }
    }
    return done;
  }();
  return all;
}

/// Checks `violation` of every run: the first thing found wrong, or "".
template <class Violation>
void none_in_any_run(Violation violation) {
  for (const RandomRun& run : random_runs()) {
    CAPTURE(run.seed);
    CHECK(violation(run) == "");
  }
}

inline std::string describe(const RandomRun& run, TaskId id) {
  const Span& span = run.timeline.spans[id];
  return fmt::format("task {}: ready {}, start {}, end {} ps", id, span.ready.count(), span.start.count(),
                     span.end.count());
}

}  // namespace moeline::testing

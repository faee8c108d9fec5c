// Metrics of timelines small enough to work out by hand.
#include "timeline/metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/simulate.hpp"
#include "timeline/intervals.hpp"
#include "timeline/phases.hpp"

TEST_SUITE("timeline/metrics") {

using namespace moeline;

namespace {

Time us(double value) { return from_us(value); }

// One rank: a GEMM 0-10, a dispatch 6-16 beside it, nothing 16-20, a GEMM 20-25.
class TwoStreams {
 public:
  TwoStreams() {
    const auto compute = draft_.add_stream({0, 7, "compute", Role::compute});
    const auto comm = draft_.add_stream({0, 27, "communication", Role::communication});
    const auto phase = draft_.add_phase({"mlp", 0, 0, 0});
    const auto other = draft_.add_phase({"dispatch", 0, 0, 0});
    const auto gemm = draft_.add_class("gemm", Role::compute);
    const auto dispatch = draft_.add_class("dispatch", Role::communication);
    add("first", 10, 0, {0, 0, gemm, compute, phase});
    add("transfer", 10, 6, {0, 0, dispatch, comm, other});
    add("second", 5, 20, {0, 0, gemm, compute, phase});
  }

  TaskGraph freeze() { return TaskGraph(std::move(draft_)); }

 private:
  void add(const char* name, double solo_us, double start_us, Label label) {
    Task task;
    task.solo = us(solo_us);
    task.delay = us(start_us);
    label.name = draft_.intern(name);
    draft_.add(task, label);
  }
  TaskGraphDraft draft_;
};

}  // namespace

TEST_CASE("busy, exposed and idle time of two streams add up to the span") {
  const TaskGraph graph = TwoStreams().freeze();
  const Metrics m = measure(graph, simulate(graph));
  CHECK(m.span == us(25));
  CHECK(m.compute_busy == us(15));
  CHECK(m.comm_busy == us(10));
  CHECK(m.exposed_comm == us(6));
  CHECK(m.idle == us(4));
  CHECK(m.overlap_fraction() == doctest::Approx(0.4));
  CHECK(m.bubble_fraction() == doctest::Approx(4.0 / 25));
  CHECK(m.compute_busy + m.exposed_comm + m.idle == m.span);
}

TEST_CASE("classes sum their kernels, and phases run from their first kernel to their last") {
  const TaskGraph graph = TwoStreams().freeze();
  const Timeline timeline = simulate(graph);
  const Metrics m = measure(graph, timeline);
  REQUIRE(m.classes.size() == 2);
  CHECK(m.classes[0].name == "dispatch");
  CHECK(m.classes[1].busy == us(15));
  CHECK(m.classes[1].solo == us(15));
  const std::vector<PhaseTimes> phases = phase_times(graph, timeline);
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].phase == "mlp");
  CHECK(phases[0].span() == us(25));
  CHECK(phases[0].busy == us(15));
  CHECK(phases[1].transfer == us(10));
  CHECK(phases[1].is_communication());
  CHECK(phase_times(graph, timeline, 0).size() == 2);
  CHECK(phase_times(graph, timeline, 1).empty());
}

TEST_CASE("the union of intervals is sorted and disjoint, and measures overlap once") {
  const auto united = unite({{us(5), us(7)}, {us(0), us(2)}, {us(1), us(3)}, {us(6), us(6)}, {us(3), us(4)}});
  REQUIRE(united.size() == 2);
  CHECK(united[0].end == us(4));
  CHECK(total(united) == us(6));
  CHECK(covered_by({{us(5), us(7)}, {us(0), us(2)}, {us(1), us(3)}, {us(6), us(6)}, {us(3), us(4)}}) == us(6));
  CHECK(overlap(united, {{us(1), us(6)}}) == us(4));
  CHECK(overlap(united, {}) == us(0));
}

}  // TEST_SUITE("timeline/metrics")

// Small cases whose answers follow by algebra from the rules of sharing (times in us, 132 SMs).
#include <doctest/doctest.h>

#include "tests/support/small_graph.hpp"

TEST_SUITE("engine/known_answers") {

using namespace moeline;
using namespace moeline::testing;

namespace {
doctest::Approx us(double value) { return doctest::Approx(value).epsilon(1e-6); }
}  // namespace

TEST_CASE("two elastic kernels that each want all SMs take twice as long") {
  SmallGraph g;
  const TaskId a = g.elastic(132, 10), b = g.elastic(132, 10);
  const Timeline t = g.run();
  CHECK(end_us(t, a) == us(20));
  CHECK(end_us(t, b) == us(20));
}

TEST_CASE("a 20-SM dispatch runs at full speed and leaves 112 of 132 SMs to an elastic kernel") {
  SmallGraph g;
  const TaskId dispatch = g.resident(20, 10), kernel = g.elastic(132, 10);
  const Timeline t = g.run();
  CHECK(end_us(t, dispatch) == us(10));
  CHECK(end_us(t, kernel) == us(10 + 10 * (1 - 112.0 / 132)));
}

TEST_CASE("a persistent GEMM on all SMs makes a later dispatch wait") {
  SmallGraph g;
  const TaskId gemm = g.resident(132, 10), dispatch = g.resident(20, 5, 1);
  const Timeline t = g.run();
  CHECK(end_us(t, gemm) == us(10));
  CHECK(to_us(t.spans[dispatch].ready) == us(1));
  CHECK(start_us(t, dispatch) == us(10));
  CHECK(end_us(t, dispatch) == us(15));
}

TEST_CASE("elastic kernels yield their SMs at once") {
  SmallGraph g;
  const TaskId kernel = g.elastic(132, 10), dispatch = g.resident(20, 5, 2);
  const Timeline t = g.run();
  CHECK(start_us(t, dispatch) == us(2));
  CHECK(end_us(t, dispatch) == us(7));
  CHECK(end_us(t, kernel) == us(10 + 5 * (1 - 112.0 / 132)));
}

TEST_CASE("an incomplete resident keeps what it took, and starves elastic kernels meanwhile") {
  SmallGraph g;
  const TaskId first = g.resident(30, 10), second = g.resident(112, 10, 1), kernel = g.elastic(132, 1, 2);
  const Timeline t = g.run();
  CHECK(end_us(t, first) == us(10));
  CHECK(start_us(t, second) == us(10));
  CHECK(end_us(t, second) == us(20));
  CHECK(start_us(t, kernel) == us(10));
  CHECK(end_us(t, kernel) == us(16.6));
}

TEST_CASE("an FP8 cast squeezed onto 20 left-over SMs takes 6.6 times as long") {
  SmallGraph g;
  g.resident(112, 1500);
  const TaskId cast = g.elastic(132, 52);
  CHECK(end_us(g.run(), cast) == us(343.2));
}

TEST_CASE("two persistent GEMMs on two streams run one after the other") {
  SmallGraph g;
  const TaskId a = g.resident(112, 10), b = g.resident(112, 10);
  const Timeline t = g.run();
  CHECK(start_us(t, a) == us(0));
  CHECK(end_us(t, a) == us(10));
  CHECK(start_us(t, b) == us(10));
  CHECK(end_us(t, b) == us(20));
}

TEST_CASE("a pending GEMM steals the SMs between two communication kernels") {
  SmallGraph g;
  const TaskId gemm = g.resident(112, 10), first = g.resident(20, 4), pending = g.resident(112, 10, 1),
               second = g.resident(20, 5, 2);
  g.edges().start_after_end(first, second);
  const Timeline t = g.run();
  CHECK(end_us(t, gemm) == us(10));
  CHECK(to_us(t.spans[second].ready) == us(6));
  CHECK(start_us(t, pending) == us(10));
  CHECK(end_us(t, pending) == us(20));
  CHECK(start_us(t, second) == us(10));
  CHECK(end_us(t, second) == us(15));
}

TEST_CASE("two kernels that each use 60 % of HBM run at 5/6 of their speed") {
  SmallGraph g;
  const ResourceId hbm = g.link("HBM", 100);
  const TaskId a = g.elastic(10, 10, 0, {{hbm, 60}}), b = g.elastic(10, 10, 0, {{hbm, 60}});
  const Timeline t = g.run();
  CHECK(end_us(t, a) == us(12));
  CHECK(end_us(t, b) == us(12));
}

TEST_CASE("kernels that together stay within HBM do not slow each other") {
  SmallGraph g;
  const ResourceId hbm = g.link("HBM", 100);
  const TaskId a = g.elastic(10, 10, 0, {{hbm, 60}}), b = g.elastic(10, 10, 0, {{hbm, 20}});
  const Timeline t = g.run();
  CHECK(end_us(t, a) == us(10));
  CHECK(end_us(t, b) == us(10));
}

TEST_CASE("where a link binds, its users get equal speed, not equal bandwidth") {
  SmallGraph g;
  const ResourceId hbm = g.link("HBM", 100);
  const TaskId a = g.elastic(10, 10, 0, {{hbm, 90}}), b = g.elastic(10, 10, 0, {{hbm, 20}});
  const Timeline t = g.run();
  CHECK(end_us(t, a) == us(11));
  CHECK(end_us(t, b) == us(11));
}

TEST_CASE("what one bottleneck denies a task is left to the others") {
  SmallGraph g;
  const ResourceId hbm = g.link("HBM", 100), nic = g.link("NIC", 10);
  const TaskId a = g.plain(10, 0, {{hbm, 80}, {nic, 10}});
  const TaskId b = g.plain(10, 0, {{nic, 10}});
  const TaskId c = g.plain(10, 0, {{hbm, 60}});
  const Timeline t = g.run();
  CHECK(t.changes[0].speed == doctest::Approx(0.5));
  CHECK(t.changes[1].speed == doctest::Approx(0.5));
  CHECK(end_us(t, c) == us(10));  // HBM: 80 x 0.5 + 60 x 1 = 100
  CHECK(end_us(t, a) == us(20));
  CHECK(end_us(t, b) == us(20));
}

TEST_CASE("a transfer is stretched by what runs beside it, for as long as it does, and not by a spin") {
  SmallGraph g;
  const TaskId transfer = g.disturbed(0.5, g.own(), 20, 10), kernel = g.disturbing(Hold::elastic, g.own(), 112, 4, 3);
  (void)g.resident(20, 30);
  const Timeline t = g.run();
  const double beside = 4 * 112.0 / 92;
  CHECK(end_us(t, kernel) == us(3 + beside));
  CHECK(end_us(t, transfer) == us(10 + beside / 2));
}

TEST_CASE("a kernel without SMs disturbs nobody, and none disturbs itself or another rank") {
  SmallGraph g;
  const TaskId transfer = g.disturbed(0.5, g.own(), 132, 10);
  (void)g.disturbing(Hold::elastic, g.own(), 132, 4);
  (void)g.disturbing(Hold::elastic, g.pool("SMs of another rank", 132), 132, 40);
  CHECK(end_us(g.run(), transfer) == us(10));
}

TEST_CASE("what a disturbed transfer leaves of a link is its neighbour's") {
  SmallGraph g;
  const ResourceId nic = g.link("NIC", 50);
  const TaskId transfer = g.disturbed(0.25, g.own(), 20, 10, {{nic, 50}}), copy = g.plain(6, 0, {{nic, 50}});
  (void)g.disturbing(Hold::resident, g.own(), 20, 100);
  const Timeline t = g.run();
  CHECK(end_us(t, copy) == us(6 / 0.75));
  CHECK(end_us(t, transfer) == us(40));
}

TEST_CASE("a resident that has begun to take SMs is not overtaken by one that becomes ready at that instant") {
  SmallGraph g(2);
  const TaskId late = g.resident(2, 5), first = g.resident(1, 3), early = g.resident(2, 5);
  g.edges().start_after_start(first, late);
  const Timeline t = g.run();
  CHECK(start_us(t, early) == us(3));
  CHECK(start_us(t, late) == us(8));
}

TEST_CASE("a barrier of two ranks holds the SMs of the early one until the late one comes") {
  SmallGraph g;
  const ResourceId other = g.pool("SMs of rank 1", 132);
  const TaskId early = g.resident(20, 0), late = g.held(Hold::resident, other, 20, 0, 5);
  const TaskId join = g.plain(0);
  const TaskId transfer0 = g.resident(20, 3), transfer1 = g.held(Hold::resident, other, 20, 3);
  const TaskId kernel = g.elastic(132, 10);
  for (const TaskId spin : {early, late}) {
    g.edges().start_after_start(spin, join);
    g.edges().end_after_end(join, spin);
  }
  g.edges().start_after_end(early, transfer0);
  g.edges().start_after_end(late, transfer1);
  const Timeline t = g.run();
  CHECK(start_us(t, early) == us(0));
  CHECK(end_us(t, early) == us(5));
  CHECK(start_us(t, late) == us(5));
  CHECK(end_us(t, late) == us(5));
  CHECK(end_us(t, transfer0) == us(8));
  CHECK(end_us(t, transfer1) == us(8));
  CHECK(end_us(t, kernel) == us(10 + 8 * (1 - 112.0 / 132)));
}

TEST_CASE("a task may start once another has started, after its delay") {
  SmallGraph g;
  const TaskId a = g.elastic(1, 10), b = g.elastic(1, 3, 2);
  g.edges().start_after_start(a, b);
  const Timeline t = g.run();
  CHECK(end_us(t, a) == us(10));
  CHECK(start_us(t, b) == us(2));
  CHECK(end_us(t, b) == us(5));
}

TEST_CASE("a task that may not end yet keeps its SM") {
  for (const Hold hold : {Hold::elastic, Hold::resident}) {
    SmallGraph g(2);
    const TaskId a = g.held(hold, 0, 1, 10), b = g.held(hold, 0, 1, 3), c = g.resident(1, 1, 4);
    g.edges().end_after_end(a, b);
    const Timeline t = g.run();
    CHECK(start_us(t, b) == us(0));
    if (hold == Hold::resident) {
      CHECK(end_us(t, a) == us(10));
      CHECK(end_us(t, b) == us(10));
      CHECK(start_us(t, c) == us(10));
    } else {
      CHECK(end_us(t, b) == us(end_us(t, a)));
      CHECK(end_us(t, a) == us(10.5));  // while c holds one of two SMs, both elastic tasks share the other
    }
  }
}

TEST_CASE("a task that may not end yet uses no link") {
  SmallGraph g;
  const ResourceId nic = g.link("NIC", 10);
  const TaskId a = g.plain(10), b = g.plain(2, 0, {{nic, 10}}), c = g.plain(4, 2, {{nic, 10}});
  g.edges().end_after_end(a, b);
  const Timeline t = g.run();
  CHECK(end_us(t, b) == us(10));
  CHECK(end_us(t, c) == us(6));
}

TEST_CASE("residents that become ready at one instant take their SMs in order of id, however they were released") {
  SmallGraph g;
  const TaskId nothing = g.plain(0), first = g.resident(132, 1), second = g.resident(132, 1);
  g.edges().start_after_end(nothing, first);
  const Timeline t = g.run();
  CHECK(end_us(t, first) == us(1));
  CHECK(end_us(t, second) == us(2));
}

TEST_CASE("a task of no duration takes no time, and a join ends with the last of 1000 predecessors") {
  SmallGraph g;
  const TaskId a = g.plain(4), nothing = g.plain(0), b = g.plain(6), join = g.plain(0);
  g.edges().start_after_end(a, nothing);
  g.edges().start_after_end(nothing, b);
  g.edges().start_after_end(b, join);
  for (int i = 1; i < 1000; ++i) g.edges().start_after_end(g.plain(0.001 * i), join);
  const Timeline t = g.run();
  CHECK(start_us(t, nothing) == us(4));
  CHECK(end_us(t, nothing) == us(4));
  CHECK(end_us(t, b) == us(10));
  CHECK(end_us(t, join) == us(10));
}

TEST_CASE("an empty graph takes no time") {
  SmallGraph g;
  CHECK(g.run().makespan == Time::zero());
}

}  // TEST_SUITE("engine/known_answers")

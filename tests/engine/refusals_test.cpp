// What cannot run is refused by name: before the run where that can be known, at the halt where it cannot.
#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/small_graph.hpp"

TEST_SUITE("engine/refusals") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("a task that wants more SMs than its pool has is refused before the run") {
  SmallGraph g;
  g.resident(200, 1);
  CHECK(refusal_of([&] { (void)g.freeze(); }) == "task 'task 0' wants 200 SMs of 'SMs', which has 132");
}

TEST_CASE("a usage above its link's capacity is refused before the run") {
  SmallGraph g;
  const ResourceId nic = g.link("NIC", 50);
  g.plain(1, 0, {{nic, 60}});
  CHECK(refusal_of([&] { (void)g.freeze(); }) == "task 'task 0' uses 60 of 'NIC', which carries 50");
}

TEST_CASE("a disturbed speed of nothing, or above full speed, is refused") {
  for (const double speed : {0.0, -1.0, 1.5}) {
    SmallGraph g;
    g.disturbed(speed, g.own(), 20, 1);
    CHECK(refusal_of([&] { (void)g.freeze(); }).starts_with("task 'task 0' has a disturbed speed of"));
  }
}

TEST_CASE("usages of one link that together exceed its capacity are refused") {
  SmallGraph g;
  const ResourceId nic = g.link("NIC", 10);
  g.plain(1, 0, {{nic, 6}, {nic, 6}});
  CHECK(refusal_of([&] { (void)g.freeze(); }) == "task 'task 0' uses 12 of 'NIC', which carries 10");
}

TEST_CASE("a cycle is named") {
  SmallGraph g;
  const TaskId a = g.plain(1), b = g.plain(1), c = g.plain(1), d = g.plain(1);
  g.edges().start_after_end(a, b);
  g.edges().start_after_end(b, c);
  g.edges().start_after_end(c, d);
  g.edges().start_after_end(d, b);
  CHECK(refusal_of([&] { (void)g.freeze(); }) ==
        "tasks wait for each other in a circle: 'task 1' -> 'task 2' -> 'task 3' -> 'task 1'");
}

TEST_CASE("a task that waits for itself is a cycle") {
  SmallGraph g;
  const TaskId a = g.plain(1);
  g.edges().start_after_end(a, a);
  CHECK(refusal_of([&] { (void)g.freeze(); }) == "tasks wait for each other in a circle: 'task 0' -> 'task 0'");
}

TEST_CASE("a barrier whose second spin finds no SMs is reported, with who holds them") {
  SmallGraph g;
  const TaskId first = g.resident(112, 0), second = g.resident(112, 0), join = g.plain(0);
  for (const TaskId spin : {first, second}) {
    g.edges().start_after_start(spin, join);
    g.edges().end_after_end(join, spin);
  }
  CHECK(refusal_of([&] { (void)g.run(); }) ==
        "the schedule deadlocks with 3 of 3 tasks left: 'task 0' may not end before 'task 2'; "
        "'task 1' never gets its 112 SMs of 'SMs', which are held by 'task 0' (112 SMs)");
}

TEST_CASE("an elastic task starved by a spin that waits for it is reported, not awaited") {
  SmallGraph g;
  const TaskId spin = g.resident(132, 0), kernel = g.elastic(132, 1);
  g.edges().end_after_end(kernel, spin);
  CHECK(refusal_of([&] { (void)g.run(); }).find("'task 1' never gets its 132 SMs") != std::string::npos);
}

}  // TEST_SUITE("engine/refusals")

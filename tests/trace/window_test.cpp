// A window of a trace holds what starts in it, and is a trace like any other.
#include "trace/window.hpp"

#include <doctest/doctest.h>

#include "tests/support/measured.hpp"
#include "tests/support/server_trace.hpp"
#include "trace/step_windows.hpp"

TEST_SUITE("trace/window") {

using namespace moeline;
using namespace moeline::testing;

TEST_CASE("a window keeps the events that start in it, with their launches, and no others") {
  SmallTrace trace;
  for (int i = 0; i < 5; ++i) trace.kernel("gemm" + std::to_string(i), 7, 100 * i, 100 * i + 10, 100 * i + 90);
  trace.call("cudaStreamSynchronize", 450, 20);
  const Trace whole = read(trace.text());
  const Trace part = within(whole, {110'000, 310'000});
  REQUIRE(part.gpu_events.size() == 2);
  CHECK(part.is_part);
  CHECK(part.name(part.gpu_events[0]) == "gemm1");
  CHECK(part.name(part.gpu_events[1]) == "gemm2");
  REQUIRE(part.calls.size() == 2);
  CHECK(part.launched_ns(part.gpu_events[0]) == 100'000);
  CHECK(part.launched_ns(part.gpu_events[1]) == 200'000);
  CHECK(part.time_zero_ns == whole.time_zero_ns);
}

TEST_CASE("flows, waits and records are renumbered with what they point to") {
  SmallTrace trace;
  for (int i = 0; i < 3; ++i) {
    trace.kernel("gemm", 7, 100 * i, 100 * i + 10, 100 * i + 40);
    trace.kernel(kDispatch, 27, 100 * i + 4, 100 * i + 45, 100 * i + 90);
  }
  Trace whole = read(trace.text());
  whole.flows = {{0, 1}, {2, 3}, {3, 4}};
  const Trace part = within(whole, {110'000, 200'000});
  REQUIRE(part.gpu_events.size() == 2);
  REQUIRE(part.flows.size() == 1);
  CHECK(part.flows[0].from == 0);
  CHECK(part.flows[0].to == 1);
}

TEST_CASE("a step keeps its number in a window, and a window of a server's trace replays to its own span") {
  const Trace whole = read(server_trace({.steps = steps_named("step[DECODE bs=32]", 4), .layers = 8}));
  const std::vector<StepWindow> steps = step_windows(whole, interpret(whole));
  const Measured part = understand(within(whole, {steps[1].time.start_ns, steps[2].time.end_ns}));
  REQUIRE(part.trace.steps.size() == 2);
  CHECK(part.trace.steps[0].number == 1);
  CHECK(part.trace.steps[1].number == 2);
  CHECK(measured_span(part.trace) == Time(std::chrono::nanoseconds(steps[2].time.end_ns - steps[1].time.start_ns)));
  CHECK(replayed_span(part) == measured_span(part.trace));
}

TEST_CASE("the whole window is the whole trace") {
  const Measured whole = understand(read(server_trace({.steps = steps_named("step[DECODE bs=32]", 2), .layers = 8})));
  const Measured same = understand(within(whole.trace, {0, whole.trace.gpu_events.back().start_ns + 1}));
  CHECK(same.trace.gpu_events.size() == whole.trace.gpu_events.size());
  CHECK(same.dependencies.size() == whole.dependencies.size());
  CHECK(analyze(same).ranks[0].times.idle == analyze(whole).ranks[0].times.idle);
}

}  // TEST_SUITE("trace/window")

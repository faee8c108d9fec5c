// Gaps: all of the span in which no kernel runs on the streams that compute, from the rank's first GPU event to its
// last, so that gaps and busy times add up.
#include "measured/breakdown.hpp"

#include <doctest/doctest.h>

#include "measured/names.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/measured.hpp"
#include "tests/support/server_trace.hpp"

TEST_SUITE("measured/gaps") {

using namespace moeline;
using namespace moeline::testing;

namespace {

RankAnalysis rank_of(const std::string& trace) { return analyze(understand(read(trace))).ranks.at(0); }

void check_adds_up(const std::string& trace) {
  for (const RankAnalysis& rank : analyze(understand(read(trace))).ranks) {
    Time sum{};
    for (const Gap& gap : rank.gaps) sum += gap.length;
    CHECK(sum + rank.compute_streams_busy == rank.times.span);
  }
}

const Gap& longest(const RankAnalysis& rank, GapCause cause) {
  const auto found = std::find_if(rank.gaps.begin(), rank.gaps.end(), [&](const Gap& g) { return g.cause == cause; });
  REQUIRE(found != rank.gaps.end());
  return *found;
}

}  // namespace

TEST_CASE("the time before a compute stream's first kernel is a gap, by what that kernel waited for") {
  const RankAnalysis launched_late =
      rank_of(SmallTrace().kernel(kDispatch, 27, 0, 10, 60).kernel("sm90_xmma_gemm", 7, 470, 480, 580).text());
  REQUIRE(launched_late.gaps.size() == 1);
  CHECK(launched_late.gaps[0].cause == GapCause::launch);
  CHECK(launched_late.gaps[0].length == from_us(470));
  SmallTrace trace;
  trace.kernel(kDispatch, 27, 0, 10, 60).wait_event(3);
  const RankAnalysis after_dispatch = rank_of(trace.kernel("sm90_xmma_gemm", 7, 5, 62, 160).text());
  REQUIRE(after_dispatch.gaps.size() == 1);
  CHECK(after_dispatch.gaps[0].cause == GapCause::communication);
  CHECK(after_dispatch.gaps[0].length == from_us(52));
  const RankAnalysis without_launch =
      rank_of(SmallTrace().kernel(kDispatch, 27, 0, 10, 60).on_gpu("kernel", "sm90_xmma_gemm", 7, 480, 580).text());
  CHECK(without_launch.gaps.at(0).cause == GapCause::unexplained);
  CHECK(without_launch.gaps.at(0).length == from_us(470));
}

TEST_CASE("the time after a compute stream's last kernel is a gap until the rank's last event ends") {
  SmallTrace trace;
  trace.kernel("sm90_xmma_gemm", 7, 0, 10, 100).kernel(kCombine, 27, 2, 50, 400);
  const Measured m = trace.kernel(kNotify, 27, 4, 402, 410).understood();
  const RankAnalysis rank = analyze(m).ranks.at(0);
  REQUIRE(rank.gaps.size() == 1);
  CHECK(rank.gaps[0].cause == GapCause::after_last);
  CHECK(rank.gaps[0].length == from_us(310));
  CHECK(kernel_name(m, rank.gaps[0].event) == kNotify);
}

TEST_CASE("idle time before an SGLang server's first kernel is the longest gap, though a copy ran before") {
  const RankAnalysis rank =
      rank_of(server_trace({.steps = steps_named("step[DECODE bs=32]", 3), .layers = 4, .lead_us = 460'000}));
  CHECK(longest(rank, GapCause::launch).length > from_us(459'000));
  CHECK(rank.gaps[0].cause == GapCause::launch);
}

TEST_CASE("gaps and what the compute streams are busy add up to the span, whatever the trace") {
  if (std::filesystem::exists(training_trace())) check_adds_up(unpacked(training_trace()));
  for (const bool graphs : {true, false}) {
    for (const int unrecorded : {0, 4}) {
      check_adds_up(server_trace({.steps = steps_named("step[DECODE bs=32]", 3),
                                  .layers = 5,
                                  .graphs = graphs,
                                  .unrecorded = unrecorded,
                                  .early_us = 500,
                                  .lead_us = 2000}));
    }
  }
  check_adds_up(server_trace({.steps = steps_named("x", 3), .layers = 5, .on_host = false, .on_gpu = false}));
  check_adds_up(SmallTrace().on_gpu("kernel", kDispatch, 27, 5, 60).on_gpu("gpu_memcpy", "copy", 7, 70, 80).text());
}

TEST_CASE("analyze prints that gaps and busy times are the span, and how many kernels have no recorded launch") {
  const TemporaryFolder folder;
  const std::string all = server_trace({.steps = steps_named("step[DECODE bs=32]", 2), .layers = 4, .graphs = false});
  const std::string complete = run_moeline({"analyze", folder.write("all.json", all)}).out;
  CHECK(complete.find("\nall gaps ") != std::string::npos);
  CHECK(complete.find("\ncompute stream 7 busy ") != std::string::npos);
  CHECK(complete.find("no recorded launch") == std::string::npos);
  const std::string some =
      server_trace({.steps = steps_named("step[DECODE bs=32]", 2), .layers = 4, .graphs = false, .unrecorded = 4});
  const std::string partial = run_moeline({"analyze", folder.write("some.json", some)}).out;
  // Two steps of an embedding, 4 x 12 kernels, 2 of the head and one that samples.
  CHECK(partial.find("26 of 104 kernels have no recorded launch (25.0 %)") != std::string::npos);
}

}  // TEST_SUITE("measured/gaps")

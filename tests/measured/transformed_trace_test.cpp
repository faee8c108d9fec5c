// The same run told differently: an answer must not depend on the day, the unit of the numbers, the rank, or on which
// of DeepEP's two names its kernels bear.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/measured.hpp"

TEST_SUITE("measured/transformed_trace") {

using namespace moeline;
using namespace moeline::testing;

namespace {

constexpr std::int64_t kZeroUs = 1'740'461'679'470'630;  // of DeepSeek's trace
constexpr std::int64_t kHoursUs = 7 * std::int64_t{3'600'000'000};

// Twice as long, seven hours later, on rank 5, times as strings with decimals, kernels by DeepEP's public name.
std::string transformed(std::string text) {
  text = change_numbers(text, "\"ts\": ", [](std::int64_t us) {
    return "\"" + std::to_string(kZeroUs + 2 * (us - kZeroUs) + kHoursUs) + ".250\"";
  });
  text = change_numbers(text, "\"dur\": ", [](std::int64_t us) { return "\"" + std::to_string(2 * us) + ".0\""; });
  text = replace_all(text, "dpsk::ep::", "deep_ep::");
  return replace_all(text, "\"rank\": 0", "\"rank\": 5");
}

const Measured& told_differently() {
  static const Measured measured = [] {
    const TemporaryFolder folder;
    return understand(read_trace(folder.write("trace.json.gz", gzipped(transformed(unpacked(training_trace()))))));
  }();
  return measured;
}

}  // namespace

TEST_CASE("the training trace told differently is the same trace, twice as long and seven hours later") {
  if (!present(training_trace())) return;
  const Trace& before = training().trace;
  const Trace& after = told_differently().trace;
  CHECK(after.time_zero_ns - before.time_zero_ns == kHoursUs * 1000 + 250);
  CHECK(after.gpus[0].rank == 5);
  CHECK(after.notes == before.notes);
  REQUIRE(after.gpu_events.size() == before.gpu_events.size());
  for (std::size_t i = 0; i < after.gpu_events.size(); ++i) {
    REQUIRE(after.gpu_events[i].start_ns == 2 * before.gpu_events[i].start_ns);
    REQUIRE(after.gpu_events[i].end_ns == 2 * before.gpu_events[i].end_ns);
    REQUIRE(after.gpu_events[i].blocks == before.gpu_events[i].blocks);
  }
  CHECK(told_differently().meaning.classes == training().meaning.classes);
}

TEST_CASE("the training trace told differently has the same accounts, doubled") {
  if (!present(training_trace())) return;
  const RankAnalysis before = analyze(training()).ranks[0];
  const RankAnalysis after = analyze(told_differently()).ranks[0];
  CHECK(after.rank == 5);
  CHECK(after.times.span == 2 * before.times.span);
  CHECK(after.times.idle == 2 * before.times.idle);
  CHECK(after.times.compute == 2 * before.times.compute);
  CHECK(after.times.exposed == 2 * before.times.exposed);
  CHECK(after.hta.times.compute == 2 * before.hta.times.compute);
  REQUIRE(after.layers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(after.layers[i].times.span == 2 * before.layers[i].times.span);
}

TEST_CASE("the training trace told differently has the same event waits and answers") {
  if (!present(training_trace())) return;
  CHECK(edges(told_differently(), Reason::event_wait) == edges(training(), Reason::event_wait));
  CHECK(edges(told_differently(), Reason::host_wait) == edges(training(), Reason::host_wait));
  for (const std::vector<WhatIf::Scale>& scales :
       {std::vector<WhatIf::Scale>{}, {{"transfer", 0}, {"barrier", 0}}, {{"barrier", 0}, {"transfer", 2}}}) {
    const double twice = to_us(replayed_span(told_differently(), {scales, {}}));
    CHECK(twice / to_us(replayed_span(training(), {scales, {}})) == doctest::Approx(2).epsilon(0.001));
  }
}

}  // TEST_SUITE("measured/transformed_trace")

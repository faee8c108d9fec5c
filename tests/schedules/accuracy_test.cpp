// The prediction against DeepSeek's measured chunk: constants fitted on layers 0 and 1, scored on layers 2 and 3.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/run/run.hpp"
#include "tests/support/data.hpp"
#include "timeline/comparison.hpp"
#include "trace/trace.hpp"

TEST_SUITE("schedules/accuracy") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::vector<std::uint32_t> kHeldOut = {2, 3};

struct Sides {
  std::vector<PhaseTimes> predicted = run_scenario(load_setup(chunk_scenario())).phases;
  std::vector<PhaseTimes> measured = phase_times(read_trace(training_trace()));
};

}  // namespace

TEST_CASE("the phases of computation of layers 2 and 3 are predicted within 4 % on average and 10 % at worst") {
  if (!present(training_trace())) return;
  const Sides sides;
  const Score result = score(sides.predicted, sides.measured, kHeldOut);
  REQUIRE(result.phases.size() == 12);
  CHECK(result.mean_abs_error < 0.04);
  CHECK(result.worst_abs_error < 0.10);
  CHECK(result.mean_abs_error < score(copied_mean(sides.measured, kHeldOut), sides.measured, kHeldOut).mean_abs_error);
}

TEST_CASE("phases run in the measured order on every stream") {
  if (!present(training_trace())) return;
  const Sides sides;
  CHECK(score(sides.predicted, sides.measured, {0, 1, 2, 3}).same_order);
}

TEST_CASE("the measured trace has 40 phases with the spans that a close reading found") {
  if (!present(training_trace())) return;
  const std::vector<PhaseTimes> measured = phase_times(read_trace(training_trace()));
  CHECK(measured.size() == 40);
  for (const PhaseTimes& phase : measured) {
    if (phase.phase == "attn(F)" && phase.layer == 2) {
      CHECK(to_us(phase.span()) == 4567);
      CHECK(to_us(phase.busy) == 4438);
    }
    if (phase.phase == "mlp(W)" && phase.layer == 0) {
      CHECK(to_us(phase.span()) == 5333);
      CHECK(to_us(phase.busy) == 5325);  // union of both streams
    }
    if (phase.phase == "combine(B)" && phase.layer == 3) {
      CHECK(to_us(phase.barrier) == 3807);
      CHECK(to_us(phase.transfer) == 3113);
    }
  }
}

TEST_CASE("a trace compared with itself has no error anywhere") {
  if (!present(training_trace())) return;
  const std::vector<PhaseTimes> measured = phase_times(read_trace(training_trace()));
  const Score result = score(measured, measured, {0, 1, 2, 3});
  CHECK(result.phases.size() == 24);
  CHECK(result.communication.size() == 16);
  CHECK(result.worst_abs_error == 0);
  CHECK(result.span_error == 0);
  CHECK(result.same_order);
}

}  // TEST_SUITE("schedules/accuracy")

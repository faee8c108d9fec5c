// A GPU at work keeps to the clock that its power cap leaves.
#include <doctest/doctest.h>

#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "tests/support/inference.hpp"

using namespace moeline;
using namespace moeline::testing;

namespace {

using Set = std::vector<std::string>;
const char* const kRested = "kernels=open-2025-late";

Run prefill(Set set = {}) {
  set.insert(set.end(), {kRested, "layers=4"});
  return run_prefill(set);
}

}  // namespace

TEST_CASE("a cap on power is met, and reached where the clock is lowered for it") {
  for (const double cap : {400.0, 700.0, 5000.0}) {
    const Run run = prefill({"hardware.power_cap_w=" + std::to_string(cap)});
    CAPTURE(cap);
    CHECK(power_w(run) <= 1.03 * cap);
    if (run.setup.clock < 0.8) CHECK(power_w(run) > 0.8 * cap);
  }
}

TEST_CASE("less power means a lower clock and a longer step, and enough of it the step at burst") {
  const Run low = prefill({"hardware.power_cap_w=400"});
  const Run usual = prefill();
  const Run enough = prefill({"hardware.power_cap_w=5000"});
  const Run burst = prefill({"clock=burst"});
  CHECK(low.setup.clock < usual.setup.clock);
  CHECK(usual.setup.clock < 1);
  CHECK(layer_us(low) > layer_us(usual));
  CHECK(layer_us(usual) > layer_us(burst));
  CHECK(enough.metrics.span == burst.metrics.span);
  CHECK(clock_mhz(burst.setup) == 1980);
}

TEST_CASE("a lower clock lengthens a step by no more than the clock falls") {
  const Run usual = prefill(), burst = prefill({"clock=burst"});
  CHECK(layer_us(usual) < layer_us(burst) / usual.setup.clock);
}

TEST_CASE("kernels that were timed under load are not slowed again, nor those of a machine whose power nobody knows") {
  for (const Set& set : {Set{"kernels=deepseek-2025-02"}, Set{kRested, "hardware=h20"}}) {
    Set burst = set;
    burst.emplace_back("clock=burst");
    const Run run = run_prefill(set);
    CHECK_FALSE(clock_matters(run.setup));
    CHECK(run.metrics.span == run_prefill(burst).metrics.span);
  }
}

TEST_CASE("decode of few requests keeps the highest clock, where prefill does not") {
  const Run decode = run_decode({kRested, "layers=8", "workload.batch_size=32"});
  CHECK(decode.setup.clock == 1);
  CHECK(power_w(decode) < 0.8 * 700);
  CHECK(prefill().setup.clock < 0.9);
}

TEST_CASE("all ranks have the clock of the one that was asked") {
  const Run all = prefill({"ranks=all"});
  CHECK(all.setup.clock == prefill().setup.clock);
}

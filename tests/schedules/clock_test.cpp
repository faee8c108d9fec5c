// A GPU at work keeps to the clock that its power cap leaves.
#include <doctest/doctest.h>

#include <algorithm>

#include "experiments/run/run_metrics.hpp"
#include "experiments/run/sustained_clock.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/step.hpp"

TEST_SUITE("schedules/clock") {

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
    CHECK(power_w(run) <= 1.005 * cap);
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

TEST_CASE("the clock is that of all layers, though equal ones are looked at once") {
  const Set decode = {kRested, "parallelism={ep: 32, dp: 32}", "workload.batch_size=256"};
  Set folds = decode, does_not = decode;
  folds.emplace_back("routing={distribution: exact}");
  does_not.emplace_back("routing={distribution: power_law, alpha: 0}");  // equal loads, layer by layer
  const Setup equal = at_sustained_clock(load_setup(decode_scenario(), folds));
  CHECK(equal.clock < 0.98);
  CHECK(equal.clock ==
        doctest::Approx(at_sustained_clock(load_setup(decode_scenario(), does_not)).clock).epsilon(0.005));
}

TEST_CASE("a whole pipeline has the clock of its overlapped layers") {
  const auto setup = [](const char* clock) { return load_setup(step_scenario(), {kRested, "level=phase", clock}); };
  const Run sustained = run_scenario(setup("clock=sustained")), burst = run_scenario(setup("clock=burst"));
  CHECK(sustained.setup.clock < 0.95);
  CHECK(sustained.metrics.span > burst.metrics.span);
}

TEST_CASE("a cap that no clock can meet is said to be missed, and a clock that was not measured is refused") {
  const Run run = prefill({"hardware.power_cap_w=81"});
  CHECK(std::any_of(run.warnings.begin(), run.warnings.end(),
                    [](const std::string& w) { return w.find("power_cap_w, 81 W, is not met") == 0; }));
  CHECK_THROWS_WITH_AS((void)prefill({"hardware.boost_clock_mhz=1400"}), doctest::Contains("boost_clock_mhz"),
                       SpecError);
}

TEST_CASE("MLA decode that was throttled when it was timed is not slowed again") {
  const KernelSet may = load_profile("h800").kernels("open-2025-05");
  CHECK_FALSE(may.is_burst("mla_decode"));
  CHECK(may.is_burst("gemm_fp8"));
}

TEST_CASE("without launch gaps a step is shorter by no more than they take") {
  const Run gaps = run_decode({"layers=8", "launch=graph"}), none = run_decode({"layers=8", "launch=none"});
  CHECK(none.program.gaps_us == 0);
  CHECK(none.metrics.span < gaps.metrics.span);
  CHECK(to_us(gaps.metrics.span - none.metrics.span) <= gaps.program.gaps_us);
}

}  // TEST_SUITE("schedules/clock")
